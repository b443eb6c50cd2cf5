"""The interactive shell: reads statements, has them run, draws results and errors, goes on.

Nothing that a statement does may end it: errors are drawn, Ctrl-C cancels. It ends with `\\q`,
Ctrl-D, or a second Ctrl-C when the first finds no ear.
"""

from __future__ import annotations

from collections.abc import Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style
from rich.console import Console

from headwater.cli import commands, helping
from headwater.cli.colouring import COLOURS, SqlLexer
from headwater.cli.complaint import complain
from headwater.cli.completion import ShellCompleter
from headwater.cli.running import Interrupted, Leave
from headwater.cli.session import Quit, ShellSession
from headwater.cli.statements import complete

PROMPT = "headwater> "
CONTINUED = "... ".rjust(len(PROMPT))
INDENT = "    "
PLAIN_WORDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""What people type in a shell that they do not know yet."""

REMINDER = "; and Enter run it, Ctrl-C clears it"
LEFT_BY_FORCE = 130


class Shell:
    """The loop of one interactive session."""

    def __init__(
        self,
        session: ShellSession,
        errors: Console,
        history: History,
        input_: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._session = session
        self._errors = errors
        self._names: Mapping[str, list[str]] = {}
        self.prompt: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_continued,
            rprompt=_reminder,
            lexer=SqlLexer(),
            completer=ShellCompleter(lambda: self._names),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            history=history,
            key_bindings=key_bindings(),
            style=Style.from_dict(COLOURS),
            include_default_pygments_style=False,
            input=input_,
            output=output,
        )

    def run(self) -> int:
        """Reads and runs until the user leaves; the exit code."""
        while True:
            self._refresh_names()
            try:
                text = self.prompt.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return 0
            try:
                self._run(text)
            except Quit:
                return 0
            except Leave:
                return LEFT_BY_FORCE

    def _run(self, text: str) -> None:
        """Runs what was typed; whatever goes wrong is drawn."""
        text = PLAIN_WORDS.get(text.strip().rstrip(";").lower(), text)
        try:
            if text.lstrip().startswith("\\"):
                commands.run(self._session, text)
            else:
                self._session.run(text)
        except Interrupted:
            self._errors.print("cancelled", style="yellow")
        except KeyboardInterrupt:
            self._errors.print("\nstopped", style="yellow")
        except (Quit, Leave):
            raise
        except Exception as error:
            complain(self._errors, error, helping.pointer)

    def _refresh_names(self) -> None:
        try:
            self._names = self._session.database.catalog_names()
        except Exception:
            self._names = {}  # completion goes without; the next statement will say what is wrong


def _continued(width: int, _line: int, _wrapped: int) -> AnyFormattedText:
    return [("class:continuation", CONTINUED.rjust(width))]


def _reminder() -> AnyFormattedText:
    return [("class:continuation", REMINDER)] if reminds(get_app().current_buffer.text) else ""


def reminds(text: str) -> bool:
    """Whether the user pressed Enter behind a statement without its semicolon."""
    return text != text.rstrip("\n") and text.strip() != "" and not text.rstrip().endswith(";")


def accepts(text: str) -> bool:
    """Whether Enter runs the text as it stands, rather than adding a line."""
    stripped = text.strip()
    if stripped.startswith("\\") or stripped.lower() in PLAIN_WORDS:
        return True
    return complete(text)


@Condition
def _choosing() -> bool:
    """Whether a completion is selected in the menu."""
    state = get_app().current_buffer.complete_state
    return state is not None and state.current_completion is not None


@Condition
def _at_indent() -> bool:
    document = get_app().current_buffer.document
    return document.cursor_position_row > 0 and not document.current_line_before_cursor.strip()


def key_bindings() -> KeyBindings:
    """Enter runs what is complete; Alt-Enter always adds a line; Tab indents empty lines."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=~_choosing)
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if accepts(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @bindings.add("enter", filter=_choosing)
    def _choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @bindings.add("escape", "enter")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    @bindings.add("tab", filter=_at_indent)
    def _indent(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(INDENT)

    return bindings
