"""One partition's log over a Storage, in Kafka's files: batches, segments, indexes, epochs, producers, retention."""

from __future__ import annotations

from tidelog.log.log import Log as Log
from tidelog.log.reader import FoundByTime as FoundByTime
from tidelog.log.recovery import Recovered as Recovered
from tidelog.log.results import Appended as Appended
from tidelog.log.results import LogRead as LogRead
from tidelog.log.results import UnexpectedOffset as UnexpectedOffset
from tidelog.log.txn_index import AbortedTransaction as AbortedTransaction
