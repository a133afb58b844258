"""ApiVersions: what others decide by, the feature levels above all."""

from __future__ import annotations

from tests.node.support import OneNode
from tidelog.quorum.membership import API_VERSIONS_VERSION, KRAFT_VERSION_FEATURE
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.api_versions import ApiVersionsRequest


def test_a_quorum_leader_learns_which_levels_a_new_voter_supports() -> None:
    """It asks in its own version: in a lower one a range that starts at 0 is not told, and nobody could be added."""
    request = ApiVersionsRequest(client_software_name="tidelog", client_software_version="quorum")
    answer = OneNode().ask(1, ApiKey.API_VERSIONS, API_VERSIONS_VERSION, request)
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported[KRAFT_VERSION_FEATURE] == (0, 1)


def test_the_level_of_the_quorum_is_among_the_finalized_ones() -> None:
    answer = OneNode().ask(
        1, ApiKey.API_VERSIONS, 4, ApiVersionsRequest(client_software_name="a", client_software_version="1")
    )
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    assert finalized[KRAFT_VERSION_FEATURE] == 1
