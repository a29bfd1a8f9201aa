"""Conversations for `LLM.chat`: what they may look like, and their token ids."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from headway import _C
from headway.errors import ArgumentError

Message: TypeAlias = Mapping[str, Any]
Conversation: TypeAlias = Sequence[Message]

ROLES = ("system", "developer", "user", "assistant", "tool")


class ConversationEncoder:
    """A model's chat template and tokenizer.

    Raises:
        ArgumentError: the model has no tokenizer or no chat template.
    """

    def __init__(self, folder: pathlib.Path, tokenizer: _C.Tokenizer | None) -> None:
        template = _C.ChatTemplate.from_pretrained(str(folder))
        if tokenizer is None or template is None:
            raise ArgumentError(f"{folder} has no {'tokenizer' if tokenizer is None else 'chat template'}")
        self._tokenizer, self._template = tokenizer, template

    def encode(self, messages: Conversation | Sequence[Conversation]) -> list[list[int]]:
        """The token ids of one conversation or of several; control tokens in a message's text are plain text."""
        conversations = [messages] if messages and isinstance(messages[0], Mapping) else messages
        return [self._template.encode(self._tokenizer, _read_conversation(f"conversation {position}", conversation))
                for position, conversation in enumerate(conversations)]


def _read_conversation(where: str, conversation: Any) -> list[tuple[str, str]]:
    if not isinstance(conversation, Sequence) or isinstance(conversation, str) or not conversation:
        raise ArgumentError(f"{where} is no list of at least one message")
    return [_read_message(f"{where}, message {position}", message) for position, message in enumerate(conversation)]


def _read_message(where: str, message: Any) -> tuple[str, str]:
    if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
        raise ArgumentError(f"{where} is no mapping of role and content")
    role = message["role"]
    if role not in ROLES:
        raise ArgumentError(f"{where}: role {role!r} is not one of {', '.join(ROLES)}")
    # Templates leave out "developer" silently; it is the newer name of "system".
    return "system" if role == "developer" else role, _read_content(where, message["content"])


def _read_content(where: str, content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise ArgumentError(f"{where}: content is neither a text nor a list of parts")
    return "".join(_read_part(f"{where}, part {position}", part) for position, part in enumerate(content))


def _read_part(where: str, part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        raise ArgumentError(f"{where} is no text part; only text is served")
    text = part.get("text")
    if not isinstance(text, str) or set(part) != {"type", "text"}:
        raise ArgumentError(f"{where} is not of the form {{'type': 'text', 'text': ...}}")
    return text
