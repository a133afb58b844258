"""How much a simulated cluster may lose before its promises end.

Some faults lose bytes (power loss, a wiped disk) or leave nobody knowing whether they did (a failing disk: its node
does not vouch for what it had). They hit at most min.insync.replicas - 1 replicas of a partition until those are in
sync again, by the least value that the topic ever has (what was acknowledged by that may have no more copies), and a
minority of the voters. A kill loses nothing and is free. Beyond that replication promises nothing, and a loss would say
nothing: seeds that go there do not look for it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.shape import Shape


class Budget:
    """Who has lost something and is not known to have it again."""

    def __init__(self, cluster: SimulatedCluster, shape: Shape, failing_disks: Container[int]) -> None:
        self._cluster = cluster
        self._shape = shape
        self._failing_disks = failing_disks
        """Nodes that may still give up because of their disks."""
        self._lost: dict[int, bool] = {}
        """Whether what they know of the metadata is lost as well."""
        self._for_good: dict[int, None] = {}

    def take(self, node_id: int, *, keeps_metadata: bool = False) -> bool:
        """Whether this node may lose bytes now; if so, it counts as having lost them.

        It counts for every replica it has, also where only one of its log directories is hit: a node that knows of a
        failure vouches for none of them when it is started again. It goes on voting where that is not its first.
        """
        self._forget_the_recovered()
        lost = {*self._lost, node_id}
        voters = self._voters()
        voiceless = {one for one, loses_metadata in self._lost.items() if loses_metadata}
        if not keeps_metadata and node_id in voters and len({*voiceless, node_id} & voters) * 2 >= len(voters):
            return False
        if not self._shape.is_beyond_budget and not self._knows_topics():
            return False  # those who know where the replicas are happen to be away
        if not self._shape.is_beyond_budget and any(
            node_id in replicas and len(lost & set(replicas)) > most for replicas, most in self._partitions()
        ):
            return False
        self._lost[node_id] = self._lost.get(node_id, False) or not keeps_metadata
        return True

    def keep(self, node_id: int) -> None:
        """What this node lost is not known to itself, so it counts for good."""
        self._for_good[node_id] = None

    def _knows_topics(self) -> bool:
        image = self._cluster.newest_image()
        return all(image.topic(topic.name) is not None for topic in self._shape.every_topic if not topic.may_lose)

    def _partitions(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Replicas of each partition whose records must stay, and how many of them may lose bytes at once."""
        image = self._cluster.newest_image()
        for topic in self._shape.every_topic:
            known = image.topic(topic.name)
            if known is None or topic.may_lose:
                continue
            for partition in known.partitions.values():
                yield partition.replicas, min(self._shape.least_min_isr(topic), len(partition.replicas)) - 1

    def _voters(self) -> set[int]:
        """The quorum's voters as the living node with the newest metadata knows them."""
        clusters = [self._cluster.process(one).node.cluster for one in self._cluster.living()]
        if not clusters:
            return set(self._cluster.controllers)
        return set(max(clusters, key=lambda one: one.image_offset).quorum.voters.ids)

    def _forget_the_recovered(self) -> None:
        """A node has what it lost again when it runs, every partition it holds counts on it, and it votes."""
        image = self._cluster.newest_image()
        partitions = [partition for _, _, partition in image.partitions()]
        for node_id in list(self._lost):
            is_pending = node_id in self._for_good or node_id in self._failing_disks
            if is_pending or not self._cluster.is_running(node_id):
                continue
            held = [partition for partition in partitions if node_id in partition.replicas]
            quorum = self._cluster.process(node_id).node.cluster.quorum
            votes = node_id not in self._cluster.controllers or quorum.is_voter
            if votes and all(node_id in partition.isr for partition in held):
                del self._lost[node_id]
