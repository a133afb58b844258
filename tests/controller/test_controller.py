"""The active controller: answers wait for the commit, leadership comes and goes, silence and broken links count."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.controller.world import World, directory
from tidelog.controller import CONTROLLER_APIS, MetadataImage
from tidelog.controller import controller as controller_module
from tidelog.controller.answers import error_response
from tidelog.controller.records import BeginTransactionRecord, TopicRecord
from tidelog.effects import Reply
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.apis import ApiKey, api_versions, request_class
from tidelog.wire.codec import encode
from tidelog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest

GRACE_MS = 200


def create_request(name: str = "t") -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


def test_an_answer_waits_for_its_records_and_later_decisions_build_on_them() -> None:
    world = World((1,))
    world.hold = True
    answers: list[Any] = []
    world.controller.ask(ApiKey.CREATE_TOPICS, 7, create_request(), answers.append)
    first = len(world.log) - 1
    world.controller.ask(ApiKey.CREATE_TOPICS, 7, create_request(), answers.append)
    world.controller.ask(ApiKey.CREATE_TOPICS, 7, create_request("u"), answers.append)
    assert answers == []
    assert "topic-created" not in world.kinds()
    world.controller.committed(first - 1)
    assert answers == []
    world.controller.committed(first)
    # The second rests on a record of the first, so it comes with it; the third has records of its own.
    assert [each.topics[0].error_code for each in answers] == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
    world.controller.committed(len(world.log) - 1)
    assert len(answers) == 3


def test_events_are_told_when_they_are_committed() -> None:
    world = World((1,))
    world.hold = True
    world.controller.ask(ApiKey.CREATE_TOPICS, 7, create_request(), lambda response: None)
    assert not world.outbox.take_effects()
    world.hold = False
    world.commit()
    assert world.last_told("topic-created")["topic"] == "t"


def test_losing_the_leadership_answers_everybody_and_forgets_what_was_not_committed() -> None:
    world = World((1,))
    committed = world.image.copy()
    answers: list[Any] = []
    world.controller.ask(ApiKey.CREATE_TOPICS, 7, create_request(), answers.append)
    del world.log[-2:]
    world.controller.deactivate()
    assert [each.topics[0].error_code for each in answers] == [ErrorCode.NOT_CONTROLLER]
    assert not world.controller.active
    world.controller.ask(ApiKey.CREATE_TOPICS, 7, create_request(), answers.append)
    assert answers[-1].topics[0].error_code == ErrorCode.NOT_CONTROLLER
    world.controller.activate(committed.copy(), 2)
    assert world.image == committed
    assert world.create().error_code == ErrorCode.NONE
    world.check()


def test_a_log_that_cannot_be_written_is_not_controller() -> None:
    world = World((1,))
    before = world.image.copy()
    world.leading = False
    assert world.create().error_code == ErrorCode.NOT_CONTROLLER
    world.pass_ms(20_000)
    assert world.image == before


def test_a_broken_decision_does_not_end_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World((1,))
    module = import_module("tidelog.controller.decide.create_topics")

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(module, "decide", broken)
    assert world.create().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "a bug" in world.last_told("controller-error")["error"]


def test_requests_are_answered_on_their_connection() -> None:
    world = World((1,))
    world.controller.handle(Request(5, 9, ApiKey.CREATE_TOPICS, 7, "client", create_request()))
    world.controller.committed(len(world.log) - 1)
    replies = [effect for effect in world.outbox.take_effects() if isinstance(effect, Reply)]
    assert [(each.connection_id, each.slot) for each in replies] == [(5, 9)]


@pytest.mark.parametrize("api_key", sorted(CONTROLLER_APIS))
def test_every_api_has_its_decision_and_its_error_answer(api_key: int) -> None:
    if api_key != ApiKey.BROKER_HEARTBEAT:
        module, function = controller_module._DECIDE[api_key]
        assert callable(getattr(import_module(f"tidelog.controller.decide.{module}"), function))
    request = request_class(api_key)()
    low, high = api_versions(api_key)
    for version in range(low, high + 1):
        assert encode(error_response(api_key, request, ErrorCode.NOT_CONTROLLER, "why"), version)


def test_an_error_is_said_for_each_topic_where_there_is_no_place_for_one() -> None:
    answer = error_response(ApiKey.CREATE_TOPICS, create_request("x"), ErrorCode.NOT_CONTROLLER)
    assert [(each.name, each.error_code) for each in answer.topics] == [("x", ErrorCode.NOT_CONTROLLER)]
    assert error_response(ApiKey.ELECT_LEADERS, ElectLeadersRequest(), ErrorCode.NOT_CONTROLLER).error_code == 41


# --- taking over ---


def take_over(world: World) -> None:
    image = world.image.copy()
    world.controller.deactivate()
    world.controller = world.new_controller()
    world.controller.activate(image, 2)
    world.commit()


def test_a_new_controller_gives_everybody_a_fresh_session() -> None:
    world = World((1, 2))
    world.pass_ms(8_999)
    take_over(world)
    world.pass_ms(8_999)
    assert world.image.brokers[1].active
    world.beat(2)
    world.pass_ms(1)
    assert world.image.brokers[1].fenced
    assert world.image.brokers[2].active


def test_a_new_controller_aborts_a_transaction_left_open() -> None:
    world = World((1,))
    image = world.image.copy()
    world.append([(BeginTransactionRecord(), 0), (TopicRecord(name="half", topic_id=b"h" * 16), 0)])
    image.apply_all(record for record, _ in world.log[-2:])
    world.controller.deactivate()
    world.controller.activate(image, 2)
    world.commit()
    assert world.image.transaction is None
    assert "half" not in world.image.topic_ids
    world.check()


def test_an_aborted_bootstrap_is_written_again() -> None:
    world = World()
    log = world.log[:3]
    image = MetadataImage()
    image.apply_all(record for record, _ in log)
    assert image.transaction is not None
    world.controller.deactivate()
    world.log[:] = log
    world.controller.activate(image, 2)
    world.commit()
    assert world.image.features["metadata.version"] == 30
    world.check()


def test_a_new_controller_elects_where_the_former_did_not_get_to_it() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]], unclean_leader_election_enable="true")
    for broker_id in (2, 3, 1):
        world.crash(broker_id)
    image = world.image.copy()
    world.start(2)
    unfenced = next(record for record, _ in reversed(world.log) if type(record).__name__.startswith("BrokerReg"))
    world.controller.deactivate()
    del world.log[world.log.index((unfenced, 0)) + 1 :]
    image = world.replayed()
    assert image.partition(image.topic_ids["t"], 0).leader == -1  # type: ignore[union-attr]
    world.controller.activate(image, 2)
    world.commit()
    assert world.partition().leader == 2


def test_a_controlled_shutdown_goes_on_under_a_new_controller() -> None:
    world = World((1, 2))
    world.create("t", replicas=[[1, 2]])
    world.beat(2)
    world.beat(1, want_shut_down=True)
    assert world.image.brokers[1].in_controlled_shutdown
    take_over(world)
    assert not world.beat(1, want_shut_down=True).should_shut_down
    world.beat(2)
    assert world.beat(1, want_shut_down=True).should_shut_down


# --- fast fencing ---


def test_a_broken_connection_is_fenced_after_the_grace() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]])
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS - 1)
    assert world.image.brokers[1].active
    world.pass_ms(1)
    assert world.image.brokers[1].fenced
    assert world.partition().leader == 2
    assert "connection broke" in world.last_told("broker-fenced")["reason"]


def test_who_is_back_within_the_grace_is_not_fenced() -> None:
    world = World((1, 2, 3))
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS - 1)
    world.beat(1)
    world.pass_ms(GRACE_MS * 3)
    assert world.image.brokers[1].active


def test_fast_fencing_can_be_turned_off() -> None:
    world = World((1, 2, 3), broker_connection_loss_fencing_enable=False)
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS * 3)
    assert world.image.brokers[1].active


def test_a_controller_that_loses_most_brokers_suspects_itself() -> None:
    world = World((1, 2, 3))
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS // 2)
    world.controller.connection_lost(2)
    world.pass_ms(GRACE_MS * 3)
    assert world.image.brokers[1].active
    assert world.image.brokers[2].active
    assert world.last_told("controller-suspects-itself")["lost_brokers"] == [1, 2]
    world.beat(3)
    world.pass_ms(world.config.broker_session_timeout_ms - GRACE_MS * 4)
    world.beat(3)
    world.pass_ms(GRACE_MS * 4)
    assert world.image.brokers[1].fenced
    assert world.image.brokers[3].active


def test_a_new_controller_starts_no_grace_for_whom_it_has_not_heard() -> None:
    world = World((1, 2, 3))
    take_over(world)
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS * 3)
    assert world.image.brokers[1].active
    world.beat(1)
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS)
    assert world.image.brokers[1].fenced


def test_a_stopping_broker_may_close_its_connection() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]])
    world.beat(1, want_shut_down=True)
    world.controller.connection_lost(1)
    world.pass_ms(GRACE_MS * 2)
    assert not world.image.brokers[1].fenced


# --- coming back quickly ---


def test_a_killed_broker_that_restarts_at_once_need_not_wait_for_its_old_session() -> None:
    world = World((1, 2, 3))
    world.controller.connection_lost(1)
    world.pass_ms(10)
    assert world.register(1).error_code == ErrorCode.NONE
    assert not world.beat(1).is_fenced
    world.pass_ms(GRACE_MS * 2)
    assert world.image.brokers[1].active


def test_after_everything_was_killed_brokers_return_at_once_but_only_with_their_directories() -> None:
    world = World((1, 2))
    take_over(world)
    assert world.register(1).error_code == ErrorCode.NONE
    world.directories[2] = [directory(2, 5)]
    assert world.register(2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
