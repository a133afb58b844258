"""AddPartitionsToTxnRequest and AddPartitionsToTxnResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class AddPartitionsToTxnTopic(Message):
    """What AddPartitionsToTxnTransaction.topics holds."""

    __slots__ = ("name", "partitions")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("partitions", "[]int32", "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AddPartitionsToTxnTransaction(Message):
    """What AddPartitionsToTxnRequest.transactions holds."""

    __slots__ = ("producer_epoch", "producer_id", "topics", "transactional_id", "verify_only")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "4+", "", -1, "", "", None),
        ("producer_id", "int64", "4+", "", -1, "", 0, None),
        ("producer_epoch", "int16", "4+", "", -1, "", 0, None),
        ("verify_only", "bool", "4+", "", -1, "", False, None),
        ("topics", (AddPartitionsToTxnTopic,), "4+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is EMPTY else topics


class AddPartitionsToTxnRequest(Message):
    """Kafka's AddPartitionsToTxnRequest, versions 0-5."""

    __slots__ = (
        "transactions",
        "v3_and_below_producer_epoch",
        "v3_and_below_producer_id",
        "v3_and_below_topics",
        "v3_and_below_transactional_id",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 24
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactions", (AddPartitionsToTxnTransaction,), "4+", "", -1, "", (), None),
        ("v3_and_below_transactional_id", "string", "0-3", "", -1, "", "", None),
        ("v3_and_below_producer_id", "int64", "0-3", "", -1, "", 0, None),
        ("v3_and_below_producer_epoch", "int16", "0-3", "", -1, "", 0, None),
        ("v3_and_below_topics", (AddPartitionsToTxnTopic,), "0-3", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactions = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is EMPTY else v3_and_below_topics


class AddPartitionsToTxnPartitionResult(Message):
    """What AddPartitionsToTxnTopicResult.results_by_partition holds."""

    __slots__ = ("partition_error_code", "partition_index")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("partition_index", "int32", "0+", "", -1, "", 0, None),
        ("partition_error_code", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    """What AddPartitionsToTxnResult.topic_results holds."""

    __slots__ = ("name", "results_by_partition")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("results_by_partition", (AddPartitionsToTxnPartitionResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is EMPTY else results_by_partition


class AddPartitionsToTxnResult(Message):
    """What AddPartitionsToTxnResponse.results_by_transaction holds."""

    __slots__ = ("topic_results", "transactional_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "4+", "", -1, "", "", None),
        ("topic_results", (AddPartitionsToTxnTopicResult,), "4+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is EMPTY else topic_results


class AddPartitionsToTxnResponse(Message):
    """Kafka's AddPartitionsToTxnResponse, versions 0-5."""

    __slots__ = ("error_code", "results_by_topic_v3_and_below", "results_by_transaction", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 24
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "4+", "", -1, "", 0, None),
        ("results_by_transaction", (AddPartitionsToTxnResult,), "4+", "", -1, "", (), None),
        ("results_by_topic_v3_and_below", (AddPartitionsToTxnTopicResult,), "0-3", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is EMPTY else results_by_transaction
        self.results_by_topic_v3_and_below = (
            [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
        )
