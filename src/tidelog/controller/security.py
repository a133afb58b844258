"""Metadata that we keep and do not act upon: ACLs, SCRAM credentials, tokens, quotas, the ZooKeeper migration.

A directory written by Apache Kafka has them; a snapshot we take of it must still have them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.controller.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)

QuotaEntity = tuple[tuple[str, str | None], ...]


class SecurityImage:
    """The kept records by what they are about."""

    __slots__ = ("acls", "credentials", "quotas", "tokens", "zk_migration_state")

    def __init__(self) -> None:
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.zk_migration_state: int | None = None

    def copy(self) -> SecurityImage:
        """The same in maps of its own; the records in them never change."""
        copy = SecurityImage()
        copy.acls = dict(self.acls)
        copy.credentials = dict(self.credentials)
        copy.tokens = dict(self.tokens)
        copy.quotas = {entity: dict(values) for entity, values in self.quotas.items()}
        copy.zk_migration_state = self.zk_migration_state
        return copy

    def __eq__(self, other: object) -> bool:
        if type(other) is not SecurityImage:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in SecurityImage.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def apply(self, record: Record) -> bool:
        """Take a record of these kinds; False when it is of another."""
        match record:
            case AccessControlEntryRecord():
                self.acls[record.id] = record
            case RemoveAccessControlEntryRecord():
                self.acls.pop(record.id, None)
            case UserScramCredentialRecord():
                self.credentials[record.name, record.mechanism] = record
            case RemoveUserScramCredentialRecord():
                self.credentials.pop((record.name, record.mechanism), None)
            case DelegationTokenRecord():
                self.tokens[record.token_id] = record
            case RemoveDelegationTokenRecord():
                self.tokens.pop(record.token_id, None)
            case ClientQuotaRecord():
                self._apply_quota(record)
            case ZkMigrationStateRecord():
                self.zk_migration_state = record.zk_migration_state
            case _:
                return False
        return True

    def _apply_quota(self, record: ClientQuotaRecord) -> None:
        entity = tuple(sorted(((each.entity_type, each.entity_name) for each in record.entity), key=lambda e: e[0]))
        if not record.remove:
            self.quotas.setdefault(entity, {})[record.key] = record.value
            return
        values = self.quotas.get(entity, {})
        values.pop(record.key, None)
        if not values:
            self.quotas.pop(entity, None)

    def records(self) -> Iterator[VersionedRecord]:
        """What rebuilds this, in an order that depends on nothing but the content."""
        if self.zk_migration_state is not None:
            yield ZkMigrationStateRecord(zk_migration_state=self.zk_migration_state), 0
        for credential in sorted(self.credentials):
            yield self.credentials[credential], 0
        for token_id in sorted(self.tokens):
            yield self.tokens[token_id], 0
        for entity in sorted(self.quotas, key=lambda parts: [(kind, name or "") for kind, name in parts]):
            for key, value in sorted(self.quotas[entity].items()):
                data = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
                yield ClientQuotaRecord(entity=data, key=key, value=value), 0
        for acl_id in sorted(self.acls):
            yield self.acls[acl_id], 0
