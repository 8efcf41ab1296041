"""Addresses as bytes, version first: a block is the interval from its first address to its last."""

from __future__ import annotations

from ipaddress import collapse_addresses
from typing import TYPE_CHECKING, Any

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import EncodedPredicate
from tidings.model import InNetworks, Kind

if TYPE_CHECKING:
    from tidings.engine.compile.encoders.base import Span
    from tidings.model import Address, Condition


def encode_address(attribute: str, condition: Condition) -> EncodedPredicate | None:
    """Return the intervals of blocks of addresses."""
    assert isinstance(condition, InNetworks)
    versions = [[net for net in condition.networks if net.version == version] for version in (4, 6)]
    joined: list[Any] = [block for nets in versions for block in collapse_addresses(nets)]  # type: ignore[type-var]
    return EncodedPredicate(Column(attribute, View.TEXT, kind=Kind.IP), tuple(map(_block_span, joined)), Kind.IP)


def pack_address(address: Address) -> bytes:
    """Return an address as bytes that sort by version, then by number."""
    return bytes([address.version]) + address.packed


def _block_span(network: Any) -> Span:
    return pack_address(network.network_address), pack_address(network.broadcast_address), 0
