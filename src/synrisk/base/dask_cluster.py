"""Work on a cluster of Dask, which does again what is lost with a worker."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from ipaddress import ip_address
from itertools import islice
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from synrisk.base.errors import EngineError, OptionError, SynriskError, got, listed
from synrisk.base.kept import Kept, Names, doing
from synrisk.base.one_thread import one_thread_each
from synrisk.base.worker_process import BROKEN, DONE, RAISED, where_from

_T = TypeVar("_T")
_R = TypeVar("_R")

SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://")
AHEAD = 3  # pieces a thread of the cluster that are laid out before they are asked for
_MOST_TIMES = 5  # that one piece is given to the cluster
_ANSWERS_IN = 10.0  # seconds
_WORKERS_IN = 60.0
_GONE_AFTER = 30.0  # without the scheduler
_LOOKS = 1.0
_APART = 5  # the protocol of pickles from which buffers go beside them


def is_address(spec: str) -> bool:
    """Tell whether a text is the address of a scheduler."""
    return spec.startswith(SCHEMES)


def is_here(address: str) -> bool:
    """Tell whether an address is surely one of this machine.

    Examples
    --------
    >>> is_here("tcp://127.0.0.1:8786"), is_here("tcp://127.0.0.1.example.org:8786")
    (True, False)
    """
    host: str | None = None
    with contextlib.suppress(ValueError):
        parts = urlsplit(address)
        host = None if "@" in parts.netloc else parts.hostname
    with contextlib.suppress(ValueError):
        return host == "localhost" or (host is not None and ip_address(host).is_loopback)
    return False


def is_client(spec: object) -> bool:
    """Tell whether something is a client of Dask, without an import of Dask."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(spec).__mro__}
    return "distributed.client.Client" in names


def connected(address: str) -> Any:
    """Return a client of the scheduler at an address, to be closed."""
    try:
        from distributed import Client
    except ImportError:
        is_there = False
    else:
        is_there, client_class = True, cast("Any", Client)
    if not is_there:
        raise OptionError(
            "executor: an address is for Dask, which is not installed: pip install 'synrisk[dask]'."
        )
    with contextlib.suppress(OSError, ValueError, TypeError, RuntimeError):
        return client_class(address, timeout=_ANSWERS_IN, set_as_default=False, name="synrisk")
    raise EngineError(
        f"executor: no scheduler of Dask answers at {got(address)} within "
        f"{_ANSWERS_IN:.0f} seconds. Is it running, and is the address the one that it prints (tcp://host:8786)?"
    )


def checked(client: Any) -> int:
    """Return how many pieces a client's cluster works on at once; raise where it cannot."""
    if getattr(client, "asynchronous", False):
        raise OptionError("executor: an asynchronous client of Dask will not do; open another.")
    _refuse_closed(client)
    found = _versions(client)
    if not found:
        _refuse_closed(client)
        raise EngineError(
            "executor: Dask's scheduler has no worker that answers, or synrisk cannot be imported "
            "there. Start workers in an environment like this one."
        )
    others = sorted({str(version) for version in found.values()} - {_version()})
    if others:
        raise EngineError(
            f"executor: workers of Dask have synrisk {listed(others)}, and this is {_version()}: "
            "numbers could differ. Install the same version everywhere."
        )
    return sum(int(n) for n in client.nthreads().values())


def _versions(client: Any) -> dict[str, Any]:
    """Return the version of synrisk that each worker has which answers."""
    until = time.monotonic() + _ANSWERS_IN
    while True:
        with contextlib.suppress(Exception):  # of many kinds, where the scheduler goes away
            client.wait_for_workers(1, timeout=_WORKERS_IN)
            # One that has just died does not answer, and is replaced.
            found: dict[str, Any] = client.run(_version, on_error="ignore")
            if found:
                return found
        if client.status != "running" or time.monotonic() > until:
            return {}
        time.sleep(_LOOKS)


def _version() -> str:
    return metadata.version("synrisk")


def _refuse_closed(client: Any) -> None:
    if client.status not in ("running", "connecting", "newly-created"):
        raise EngineError(f"executor: the client of Dask is {client.status}; open another.")


@dataclass(frozen=True, repr=False)
class _Parcel:
    """Something that is sent, and may be sent on from one worker to another.

    Dask lays arrays at any address. Sums over an array that is not aligned have other bits.
    """

    value: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        import cloudpickle

        buffers: list[pickle.PickleBuffer] = []
        head = cloudpickle.dumps(self.value, protocol=5, buffer_callback=buffers.append)
        apart = pickle.PickleBuffer if int(protocol) >= _APART else bytes
        return _opened, (head, *(apart(buffer.raw()) for buffer in buffers))


def _opened(head: Any, *buffers: Any) -> Any:
    """Return a parcel again, its arrays copied to where they are aligned."""
    aligned = [bytearray(memoryview(buffer)) for buffer in buffers]
    return _Parcel(pickle.loads(head, buffers=aligned))  # noqa: S301 - of our own cluster


def _unwrapped(value: Any) -> Any:
    """Return what is in a parcel."""
    return value.value if isinstance(value, _Parcel) else value


def _work(function: Any, fixed: tuple[list[Any], dict[str, Any]], piece: Any) -> tuple[str, Any]:
    """Return what a function gives for one piece, or what it raised."""
    args = [_unwrapped(value) for value in fixed[0]]
    named = {name: _unwrapped(value) for name, value in fixed[1].items()}
    try:
        with one_thread_each():
            return DONE, _Parcel(function(*args, _unwrapped(piece), **named))
    except (SynriskError, MemoryError) as error:
        return RAISED, error if isinstance(error, SynriskError) else MemoryError()
    except Exception as error:
        return BROKEN, where_from(error)


@dataclass(eq=False, repr=False)
class _Asked:
    """A piece of work that the cluster has."""

    item: Any
    future: Any
    n_times: int = 1


class DaskCluster:
    """An executor on a client's cluster.

    Parameters
    ----------
    client
        A client that is open.
    n
        How many pieces the cluster works on at once.
    """

    def __init__(self, client: Any, n: int) -> None:
        self._client, self._n = client, n
        self._there: dict[int, Any] = {}  # what was sent to be kept, by its name
        self._names = Names(lambda name: self._there.pop(name, None))
        self._number = uuid.uuid4().int % 10**12 * 1000  # no other map has this one's keys

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterator[_R]:
        """Apply `function` to each item; results come in order, a few are made ahead."""
        source = iter(items)
        task = _Mapped(self, function)
        asked: deque[_Asked] = deque()
        try:
            while True:
                for item in islice(source, AHEAD * self._n - len(asked)):
                    asked.append(_Asked(item, task.submitted(item)))
                if not asked:
                    return
                yield self._result(task, asked)
        finally:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._client.cancel([one.future for one in asked])

    def sent(self, value: Any) -> Any:
        """Return a promise of data that lie on the cluster."""
        return self._try(lambda: self._client.scatter([_Parcel(value)], hash=False)[0])

    def kept(self, value: Kept) -> Any:
        """Return a promise of what is kept on the cluster, sent where it is new."""
        name = self._names.of(value)
        if name not in self._there:
            self._there[name] = self.sent(value)
        return self._there[name]

    def forget_all(self) -> None:
        """Send anew whatever is needed: a worker that held the only copy of something is gone."""
        self._there.clear()

    def fresh_number(self) -> int:
        """Return a number that no map had."""
        self._number += 1
        return self._number

    def submit(self, *given: Any, **options: Any) -> Any:
        """Give the cluster a call."""
        return self._try(
            lambda: self._client.submit(*given, pure=False, retries=_MOST_TIMES, **options)
        )

    def _result(self, task: _Mapped, asked: deque[_Asked]) -> Any:
        """Return the result of the first piece, which is given to the cluster again if lost."""
        first = asked[0]
        while True:
            found = self._waited_for(first.future)
            if found is not None:
                break
            _refuse_closed(self._client)
            if first.n_times >= _MOST_TIMES:
                raise EngineError(
                    f"executor: workers of Dask were lost {_MOST_TIMES} times while {task.what}. "
                    "Their logs say why; where they are short of memory, use fewer threads each."
                )
            # What they were made from may have been lost too, and other pieces with it.
            self.forget_all()
            task.send_anew()
            for one in asked:
                if one is first or one.future.status in ("error", "lost", "cancelled"):
                    one.future, one.n_times = task.submitted(one.item), one.n_times + 1
        asked.popleft()
        kind, value = found
        if kind == DONE:
            return _unwrapped(value)
        if kind == RAISED:
            raise value
        raise EngineError(
            f"A worker of Dask failed while {task.what}: {value[0]} at {value[1]}. "
            "executor='threads' shows it whole."
        )

    def _waited_for(self, future: Any) -> Any:
        """Return a task's answer; None where it was lost, and raise where the scheduler is gone."""
        is_done = threading.Event()
        future.add_done_callback(lambda _: is_done.set())
        gone_since = None
        while True:
            # Only then is it fetched: of a fetch that is cut short as its time is up distributed
            # waits for ever for what it has cancelled, and so do all later ones.
            if is_done.wait(_LOOKS):
                try:
                    return future.result()
                except CancelledError:
                    return None
                except Exception as error:
                    # Workers that die or leave; what a task raises comes as its answer.
                    if type(error).__name__ in ("KilledWorker", "CommClosedError"):
                        return None
                    return BROKEN, where_from(error)
            if self._client.status == "running":
                gone_since = None
            elif gone_since is None:
                gone_since = time.monotonic()
            elif time.monotonic() - gone_since > _GONE_AFTER:
                break
            _refuse_closed(self._client)
        raise _is_gone()

    def _try(self, call: Callable[[], Any]) -> Any:
        """Return what a call gives, tried again: a worker that was sent to may have just died."""
        begun = time.monotonic()
        while True:
            _refuse_closed(self._client)
            with contextlib.suppress(OSError, TimeoutError, CancelledError):
                return call()
            if time.monotonic() - begun > _GONE_AFTER:
                raise _is_gone()
            time.sleep(_LOOKS)


def _is_gone() -> EngineError:
    return EngineError(
        "executor: Dask's scheduler is gone, and what it had is lost. Start it again, and run this "
        "once more."
    )


class _Mapped:
    """A function that is mapped: what is the same for all pieces is sent once."""

    def __init__(self, cluster: DaskCluster, function: Any) -> None:
        self.what = doing(function)
        self._cluster, self._number, self._n = cluster, cluster.fresh_number(), 0
        own = function if isinstance(function, partial) else partial(function)
        self._function = own.func
        self._args: tuple[Any, ...] = own.args
        self._kwargs: dict[str, Any] = dict(own.keywords)
        self.send_anew()

    def send_anew(self) -> None:
        """Send what is the same for all pieces."""
        large: list[Any] = [
            value
            for value in (*self._args, *self._kwargs.values())
            if not isinstance(value, (Kept, bool, int, float, str))
        ]
        promises = {id(value): self._cluster.sent(value) for value in large}

        def place(value: Any) -> Any:
            if isinstance(value, Kept):
                return self._cluster.kept(value)
            return promises.get(id(value), value)

        self._fixed = (
            [place(value) for value in self._args],
            {name: place(value) for name, value in self._kwargs.items()},
        )

    def submitted(self, item: Any) -> Any:
        """Return a promise of what the function gives for an item."""
        self._n += 1
        item = self._cluster.kept(item) if isinstance(item, Kept) else _Parcel(item)
        key = f"synrisk {self.what}-{self._number}-{self._n}"
        return self._cluster.submit(_work, self._function, self._fixed, item, key=key)
