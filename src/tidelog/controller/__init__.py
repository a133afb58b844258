"""The controller: decides (state + request -> records) and applies (record -> state); nothing else changes the state.

MetadataImage, ImageDelta, records_for_snapshot    the state, what changed in it, and how it is rebuilt
Controller, CONTROLLER_APIS                        the active controller of a cluster
format_records, records_for_empty_log              the first records of a new cluster
"""

from __future__ import annotations

from tidelog.controller.bootstrap import DEFAULT_FEATURES, format_records, records_for_empty_log
from tidelog.controller.controller import CONTROLLER_APIS, Controller
from tidelog.controller.delta import ImageDelta
from tidelog.controller.entities import NO_LEADER, Broker, Endpoint, Partition, RegisteredController, Topic
from tidelog.controller.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
    UnknownRecordError,
    records_for_snapshot,
)
from tidelog.controller.levels import SUPPORTED_FEATURES, UnsupportedLevelError

__all__ = [
    "BROKER_RESOURCE",
    "CONTROLLER_APIS",
    "DEFAULT_FEATURES",
    "NO_LEADER",
    "SUPPORTED_FEATURES",
    "TOPIC_RESOURCE",
    "Broker",
    "Controller",
    "Endpoint",
    "ImageDelta",
    "MetadataImage",
    "Partition",
    "RegisteredController",
    "Topic",
    "UnknownRecordError",
    "UnsupportedLevelError",
    "format_records",
    "records_for_empty_log",
    "records_for_snapshot",
]
