"""A text in the editor of whoever runs a command: that of VISUAL or EDITOR."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from tidings.errors import TidingsError


def edit_text(text: str, *, ending: str = ".json") -> str:
    """Return the text as the editor leaves it; an editor that fails is a `TidingsError`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="tidings-") as folder:
        file = Path(folder, f"subscription{ending}")
        file.write_text(text + "\n", encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - the user's own editor
        except (OSError, subprocess.CalledProcessError) as problem:
            msg = f"the editor `{editor}` failed: {problem}; set EDITOR, or say the changes as options"
            raise TidingsError(msg) from None
        return file.read_text(encoding="utf-8")
