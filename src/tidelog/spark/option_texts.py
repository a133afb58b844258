"""Options as Spark hands them over, names without their case and texts: what all formats check in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from tidelog.client.client import parse_bootstrap
from tidelog.config.setting import nearest
from tidelog.errors import ConfigError

_SECURITY = ("kafka.ssl.", "kafka.sasl.", "kafka.security.")


class OptionTexts:
    """The options of one read or write; every complaint is a ConfigError that names the option."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._texts = {name.lower(): value for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._texts

    def get(self, name: str) -> str | None:
        """As it was given."""
        return self._texts.get(name.lower())

    def refuse_unknown(self, names: Sequence[str], what: str, reasons: Mapping[str, str]) -> None:
        """Refuse what is not among `names`: with the nearest of them, or with the reason why `what` has none of it."""
        known = {name.lower(): name for name in names}
        for name in self._texts:
            if name in known:
                continue
            if name in reasons:
                raise ConfigError(f"option {name} is not for {what}: {reasons[name]}")
            if name.startswith(_SECURITY):
                raise ConfigError(f"option {name} is not supported: {what} speaks PLAINTEXT only")
            like = nearest(name, known)
            hint = f", did you mean {known[like]}?" if like else f"; known are {', '.join(names)}"
            raise ConfigError(f"unknown option {name}{hint}")

    def bootstrap(self) -> str:
        """Brokers to ask first; PLAINTEXT is the only way to them."""
        text = (self.get("kafka.bootstrap.servers") or "").strip()
        if not text:
            raise ConfigError(
                "option kafka.bootstrap.servers is missing: say which brokers to ask, as HOST:PORT,HOST:PORT"
            )
        try:
            parse_bootstrap(text)
        except ConfigError as error:
            raise ConfigError(f"option kafka.bootstrap.servers: {error}") from None
        self.only("kafka.security.protocol", ("PLAINTEXT",), "TLS and SASL are not supported")
        return text

    def words(self, name: str) -> list[str]:
        """A list with commas between."""
        return [word.strip() for word in (self.get(name) or "").split(",") if word.strip()]

    @overload
    def whole(self, name: str, *, low: int) -> int | None: ...

    @overload
    def whole(self, name: str, default: int, *, low: int) -> int: ...

    def whole(self, name: str, default: int | None = None, *, low: int) -> int | None:
        """A whole number that is not below `low`."""
        text = self.get(name)
        if text is None:
            return default
        try:
            number = int(text.strip())
        except ValueError:
            raise ConfigError(f"option {name}: {text!r} is no whole number") from None
        if number < low:
            raise ConfigError(f"option {name}: {number} is below {low}")
        return number

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of a few words, as they are written here; the first where none is given."""
        text = self.get(name)
        if text is None:
            return choices[0]
        for choice in choices:
            if text.strip().lower() == choice.lower():
                return choice
        said = f"is neither {' nor '.join(choices)}" if len(choices) == 2 else f"is not one of {', '.join(choices)}"
        raise ConfigError(f"option {name}: {text!r} {said}")

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        return self.choice(name, ("true", "false") if default else ("false", "true")) == "true"

    def only(self, name: str, allowed: Sequence[str], reason: str) -> None:
        """Refuse whatever differs from the one way there is."""
        text = self.get(name)
        if text is not None and text.strip().lower() not in (each.lower() for each in allowed):
            raise ConfigError(f"option {name}: {text!r}: only {allowed[0]} is possible: {reason}")
