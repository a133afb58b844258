"""What a script may expect. Each looks at the stage and says whether it is so and, in words, what is.

hw NODE N                      the high watermark at a replica
end NODE N                     its log end offset
log NODE 0..2@1 3..6@2         its offsets with their epochs; `log NODE empty`
values NODE M1 M2 …            the values in its log
leader NODE | none [epoch N]   leaders N N …       one for each partition
isr NODE … | none              elr NODE … | none
identical NODE …               logs equal byte for byte
serving NODE …                 up and not fenced            fenced NODE
state NODE WORD …              leader, in sync, out of sync, eligible, down, paused
controller not NODE            another node is the active controller       controller epoch-above N
read NAME VALUE … | nothing    everything a consumer has read, in order
answer NAME error E | nothing | VALUE …            the last fetch's answer;   … hw N
offset NAME N | E              the last offset it was told, or the error
served NAME NODE               who served what it read last
acknowledged NAME VALUE … | none                   unsettled NAME N          failed NAME VALUE … | none
errors NAME E some | none      how often a producer met an error              retries NAME some | none
lost VALUE … | none            acknowledged, and not in the leader's log
duplicated VALUE … | none      in the leader's log more than once
reordered some | none          a producer's records in another order than they were handed over
positions GROUP committed N current N | unknown hw N end N
lags GROUP committed N current N hw N              how far each is behind: the first two behind the watermark
message A->B TEXT              a message about the partition passed since the last `mark`
no-message A->B TEXT           it did not
told KIND [name=value …]       an event of the nodes since the last `mark`;  not-told KIND
checkpoint NODE FILE N         the partition's offset in a checkpoint file
line NODE FILE TEXT            a line of a file
epochs grow                    no leader, partition or controller epoch went back at any node
default NAME VALUE             the default of a setting
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidelog.config import NodeConfig, TopicConfig
from tidelog.ledger import Findings, compare
from tidelog.sim.lanes import lags
from tidelog.sim.wording import runs

if TYPE_CHECKING:
    from tidelog.sim.player import Player

Verdict = tuple[bool, str]
"""Whether it is so, and what is."""
Check = Callable[["Player", Sequence[str]], Verdict]


def judge(player: Player, words: Sequence[str]) -> Verdict:
    """Look whether an expectation holds; ValueError when it is none."""
    check = CHECKS.get(words[0]) if words else None
    if check is None:
        raise ValueError(f"nothing is known to expect of {words[0] if words else 'nothing'!r}")
    return check(player, words[1:])


def _list(values: Sequence[object], empty: str = "none") -> str:
    return " ".join(map(str, values)) or empty


def _same(found: str, words: Sequence[str]) -> Verdict:
    return found == " ".join(words), found


def _hw(player: Player, words: Sequence[str]) -> Verdict:
    lane = player.lane(words[0])
    return lane.high_watermark == int(words[1]), f"HW {lane.high_watermark}"


def _end(player: Player, words: Sequence[str]) -> Verdict:
    lane = player.lane(words[0])
    return lane.end_offset == int(words[1]), f"log end {lane.end_offset}"


def _log(player: Player, words: Sequence[str]) -> Verdict:
    found = runs([(one.offset, one.epoch) for one in player.lane(words[0]).records]) or "empty"
    return _same(found, words[1:])


def _values(player: Player, words: Sequence[str]) -> Verdict:
    return _same(_list([one.value for one in player.lane(words[0]).records], "empty"), words[1:])


def _leader(player: Player, words: Sequence[str]) -> Verdict:
    view = player.view()
    wanted = -1 if words[0] == "none" else player.node(words[0])
    is_so = view.leader == wanted and (len(words) < 3 or view.leader_epoch == int(words[2]))
    return is_so, f"leader {view.leader if view.leader >= 0 else 'none'} epoch {view.leader_epoch}"


def _leaders(player: Player, words: Sequence[str]) -> Verdict:
    return _same(_list(player.stage.leaders(player.topic)), words)


def _nodes(player: Player, words: Sequence[str]) -> list[int]:
    return [] if words == ("none",) or list(words) == ["none"] else sorted(player.node(word) for word in words)


def _isr(player: Player, words: Sequence[str]) -> Verdict:
    found = sorted(player.view().isr)
    return found == _nodes(player, words), f"ISR {_list(found)}"


def _elr(player: Player, words: Sequence[str]) -> Verdict:
    found = sorted(player.view().eligible)
    return found == _nodes(player, words), f"ELR {_list(found)}"


def _identical(player: Player, words: Sequence[str]) -> Verdict:
    logs = [player.stage.log_bytes(player.node(word), player.topic, 0) for word in words]
    return all(one == logs[0] for one in logs), f"logs of {_list([len(one) for one in logs])} bytes"


def _serving(player: Player, words: Sequence[str]) -> Verdict:
    missing = [word for word in words if not player.stage.is_serving(player.node(word))]
    return not missing, f"not serving: {_list(missing)}"


def _fenced(player: Player, words: Sequence[str]) -> Verdict:
    is_fenced = player.stage.is_fenced(player.node(words[0]))
    return is_fenced, "fenced" if is_fenced else "it may serve"


def _state(player: Player, words: Sequence[str]) -> Verdict:
    return _same(player.lane(words[0]).state, words[1:])


def _controller(player: Player, words: Sequence[str]) -> Verdict:
    found = player.stage.controller()
    if found is None:
        return False, "no controller"
    if words[0] == "epoch-above":
        return found[1] > player.number(words[1]), f"epoch {found[1]}"
    return found[0] != player.node(words[1]), f"node {found[0]}"


def _read(player: Player, words: Sequence[str]) -> Verdict:
    return _same(_list([one.value for one in player.seen[words[0]]], "nothing"), words[1:])


def _answer(player: Player, words: Sequence[str]) -> Verdict:
    answer = player.answers[words[0]]
    found = f"error {answer.error}" if answer.error else _list([one.value for one in answer.records], "nothing")
    if "hw" in words:
        found += f" hw {answer.high_watermark}"
    return _same(found, words[1:])


def _offset(player: Player, words: Sequence[str]) -> Verdict:
    return _same(player.offsets[words[0]], words[1:])


def _served(player: Player, words: Sequence[str]) -> Verdict:
    node_id = player.answers[words[0]].node_id
    return node_id == player.node(words[1]), f"node {node_id}"


def _outcome(outcome: str) -> Check:
    def check(player: Player, words: Sequence[str]) -> Verdict:
        found = [entry.value for entry in player.stage.ledger(words[0]) if entry.outcome == outcome]
        return _same(_list(found), words[1:])

    return check


def _unsettled(player: Player, words: Sequence[str]) -> Verdict:
    count = player.stage.unsettled(words[0])
    return count == int(words[1]), f"{count} unsettled"


def _some(count: int, wanted: str) -> Verdict:
    return (count > 0) == (wanted == "some"), f"{count} times"


def _errors(player: Player, words: Sequence[str]) -> Verdict:
    return _some(player.stage.counts(words[0]).errors.get(words[1], 0), words[2])


def _retries(player: Player, words: Sequence[str]) -> Verdict:
    return _some(player.stage.counts(words[0]).retries, words[1])


def findings(player: Player) -> list[Findings]:
    """The ledgers of all producers against the leaders' logs, partition by partition."""
    found = []
    for index in range(len(player.stage.leaders(player.topic))):
        view = player.stage.partition(player.topic, index)
        values = [one.value for one in view.lane(view.leader).records] if view.leader >= 0 else []
        entries = [
            entry
            for name in player.producers
            for entry in player.stage.ledger(name)
            if (entry.topic, entry.partition) == (view.topic, view.index)
        ]
        found.append(compare(entries, values))
    return found


def _lost(player: Player, words: Sequence[str]) -> Verdict:
    return _same(_list([entry.value for one in findings(player) for entry in one.lost]), words)


def _duplicated(player: Player, words: Sequence[str]) -> Verdict:
    return _same(_list([value for one in findings(player) for value in one.duplicated]), words)


def _reordered(player: Player, words: Sequence[str]) -> Verdict:
    found = [pair for one in findings(player) for pair in one.reordered]
    return bool(found) == (words[0] == "some"), _list([f"{before} before {after}" for before, after in found])


def _positions(player: Player, words: Sequence[str]) -> Verdict:
    found = player.stage.group_positions(words[0], player.topic, 0)
    current = "unknown" if found.current is None else found.current
    text = f"committed {found.committed} current {current} hw {found.high_watermark} end {found.end_offset}"
    return _same(text, words[1:])


def _lags(player: Player, words: Sequence[str]) -> Verdict:
    committed, current, watermark = lags(player.stage.group_positions(words[0], player.topic, 0))
    return _same(f"committed {committed} current {current} hw {watermark}", words[1:])


def _message(player: Player, words: Sequence[str]) -> Verdict:
    source, target = player.ways(words[0])[0]
    found = [one.text for one in player.traffic if (one.source, one.target) == (source, target)]
    return " ".join(words[1:]) in found, "; ".join(found) or "no message"


def _no_message(player: Player, words: Sequence[str]) -> Verdict:
    is_so, found = _message(player, words)
    return not is_so, found


def _told(player: Player, words: Sequence[str]) -> Verdict:
    wanted = dict(word.split("=", 1) for word in words[1:])
    of_kind = [one for one in player.told if one.kind == words[0]]
    matching = [
        one for one in of_kind if all(str(one.fields.get(name)).lower() == value for name, value in wanted.items())
    ]
    return bool(matching), "; ".join(str(dict(one.fields)) for one in of_kind) or f"no {words[0]}"


def _not_told(player: Player, words: Sequence[str]) -> Verdict:
    is_so, found = _told(player, words)
    return not is_so, found


def _checkpoint(player: Player, words: Sequence[str]) -> Verdict:
    text = player.stage.read_file(player.node(words[0]), words[1])
    start = f"{player.topic} 0 "
    found = next((line.removeprefix(start) for line in text.splitlines() if line.startswith(start)), "none")
    return _same(found, words[2:])


def _line(player: Player, words: Sequence[str]) -> Verdict:
    text = player.stage.read_file(player.node(words[0]), words[1])
    return " ".join(words[2:]) in text.splitlines(), "; ".join(text.splitlines())


def _epochs(player: Player, words: Sequence[str]) -> Verdict:
    found = player.stage.epochs_that_went_back()
    return not found and list(words) == ["grow"], "; ".join(found) or "they only grow"


def _default(_player: Player, words: Sequence[str]) -> Verdict:
    name, wanted = words
    settings = TopicConfig.SETTINGS if name in TopicConfig.SETTINGS else NodeConfig.SETTINGS
    found = settings[name].format(settings[name].default)
    return found == wanted, str(found)


CHECKS: dict[str, Check] = {
    "hw": _hw,
    "end": _end,
    "log": _log,
    "values": _values,
    "leader": _leader,
    "leaders": _leaders,
    "isr": _isr,
    "elr": _elr,
    "identical": _identical,
    "serving": _serving,
    "fenced": _fenced,
    "state": _state,
    "controller": _controller,
    "read": _read,
    "answer": _answer,
    "offset": _offset,
    "served": _served,
    "acknowledged": _outcome("acknowledged"),
    "failed": _outcome("failed"),
    "unsettled": _unsettled,
    "errors": _errors,
    "retries": _retries,
    "lost": _lost,
    "duplicated": _duplicated,
    "reordered": _reordered,
    "positions": _positions,
    "lags": _lags,
    "message": _message,
    "no-message": _no_message,
    "told": _told,
    "not-told": _not_told,
    "checkpoint": _checkpoint,
    "line": _line,
    "epochs": _epochs,
    "default": _default,
}
