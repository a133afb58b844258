"""Set-up finds a Java that Spark can use, and does not take one that it cannot."""

from __future__ import annotations

import hashlib
import struct
import subprocess
from pathlib import Path

import pytest

from tools import set_up


def fake_java(folder: Path, version: str, exit_code: int = 0) -> Path:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\nexit {exit_code}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25-ea", 25)])
def test_the_version_of_a_java(tmp_path: Path, version: str, major: int) -> None:
    assert set_up.java_version(fake_java(tmp_path / "bin", version)) == major


def test_what_does_not_run_is_no_java(tmp_path: Path) -> None:
    assert set_up.java_version(fake_java(tmp_path / "bin", "17", exit_code=1)) == 0
    assert set_up.java_version(tmp_path / "missing") == 0


def test_an_old_java_is_passed_over_and_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, good = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "good", "21.0.1")
    home = fake_java(tmp_path / "home" / "bin", "17.0.1")
    ours = fake_java(tmp_path / "environment", "21.0.1")
    monkeypatch.setenv("PATH", f"{ours.parent}:{old.parent}:{good.parent}")
    assert set_up.find_java("", excluded=ours.parent) == good
    assert set_up.find_java(str(tmp_path / "home"), excluded=ours.parent) == home
    monkeypatch.setenv("PATH", f"{ours.parent}:{old.parent}")
    assert set_up.find_java("", excluded=ours.parent) is None


def test_the_wrapper_leaves_out_the_one_flag_and_keeps_the_rest(tmp_path: Path) -> None:
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nfor argument do printf "[%s]" "$argument"; done\n')
    echo.chmod(0o755)
    wrapper = tmp_path / "java"
    wrapper.write_text(set_up.JAVA_BY_PIP.format(java=echo, options='"-Dx=a b"'))
    wrapper.chmod(0o755)
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-opens=x", "Main", ""]
    said = subprocess.run([str(wrapper), *words], capture_output=True, text=True, check=True).stdout
    assert said == "[-Dx=a b][-cp][a b][--add-opens=x][Main][]"


def test_certificates_in_javas_key_store_format() -> None:
    store = set_up.java_key_store([b"one", b"second"])
    assert struct.unpack(">IIi", store[:12]) == (0xFEEDFEED, 2, 2)
    assert b"X.509\x00\x00\x00\x06second" in store
    password = "changeit".encode("utf-16-be")
    assert hashlib.sha1(password + b"Mighty Aphrodite" + store[:-20]).digest() == store[-20:]
