"""ApiVersions, versions 0 to 4: what this node can do (KIP-35), who asks (KIP-511), the feature levels (KIP-584).

A version that is not known is answered by the runtime in the form of version 0, so that the client can choose again.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from tidelog.controller.levels import KRAFT_VERSION
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.API_VERSIONS
VERSIONS = (0, 4)
NAMES_CLIENT_VERSION = 3
ZERO_MINIMUM_VERSION = 4
"""From here on a supported range may start at 0 (KIP-584's follow-up): older clients choke on it."""
_ALLOWED = frozenset(string.ascii_letters + string.digits + ".-")


def handle(node: Node, request: Request) -> ApiVersionsResponse:
    """The APIs of the listener the request came by, and the features."""
    if request.api_version >= NAMES_CLIENT_VERSION:
        names = (request.body.client_software_name, request.body.client_software_version)
        if not all(_is_name(name) for name in names):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    # The quorum keeps its own level in its log's control records, not in the image (KIP-853).
    finalized = node.image.features | {KRAFT_VERSION: node.cluster.quorum.kraft_version}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(node.advertised_versions(request.listener).items())
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(node.supported_features.items())
            if low > 0 or request.api_version >= ZERO_MINIMUM_VERSION
        ],
        finalized_features_epoch=node.cluster.image_offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(finalized.items())
            if level > 0
        ],
    )


def _is_name(text: str) -> bool:
    return bool(text) and text[0] not in ".-" and text[-1] not in ".-" and _ALLOWED.issuperset(text)
