"""One file a request. Each opens with its versions and the KIPs it answers to, and has one function, `handle`.

A broker's listeners and a controller's listeners serve different requests, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidelog.node.apis import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller,
    delete_groups,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    end_txn,
    envelope,
    fetch,
    find_coordinator,
    forwarded,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    private_query,
    produce,
    quorum,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)

Handler = Callable[..., Any]
Versions = Mapping[int, tuple[int, int]]

_BROKER = (
    add_offsets_to_txn,
    add_partitions_to_txn,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)

BROKER_VERSIONS: Versions = {
    **{int(api.API_KEY): api.VERSIONS for api in _BROKER},
    **{int(api_key): versions for api_key, versions in forwarded.VERSIONS.items()},
}
BROKER_HANDLERS: Mapping[int, Handler] = {
    **{int(api.API_KEY): api.handle for api in _BROKER},
    **{int(api_key): forwarded.handle for api_key in forwarded.VERSIONS},
    private_query.API_KEY: private_query.handle,
}
CONTROLLER_VERSIONS: Versions = {
    int(api_versions.API_KEY): api_versions.VERSIONS,
    int(describe_cluster.API_KEY): describe_cluster.VERSIONS,
    int(describe_configs.API_KEY): describe_configs.VERSIONS,
    int(envelope.API_KEY): envelope.VERSIONS,
    **{int(api_key): versions for api_key, versions in quorum.VERSIONS.items()},
    **{int(api_key): versions for api_key, versions in controller.VERSIONS.items()},
}
CONTROLLER_HANDLERS: Mapping[int, Handler] = {
    int(api_versions.API_KEY): api_versions.handle,
    int(describe_cluster.API_KEY): describe_cluster.handle,
    int(describe_configs.API_KEY): describe_configs.handle,
    int(envelope.API_KEY): envelope.handle,
    **{int(api_key): quorum.handle for api_key in quorum.VERSIONS},
    **{int(api_key): controller.handle for api_key in controller.VERSIONS},
    private_query.API_KEY: private_query.handle,
}
ALL_VERSIONS: Versions = {**CONTROLLER_VERSIONS, **BROKER_VERSIONS, private_query.API_KEY: private_query.VERSIONS}
"""What can be read. The private query is served everywhere and advertised nowhere."""
