"""Which program a server of replies runs: it is part of what determines a result."""

from contextlib import suppress
from dataclasses import replace

from ianvs.base.errors import ReplyServerError
from ianvs.config.spec import JobSpec
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.processes.reply_server import ReplyServer
from ianvs.store.keys import digest


def with_server_version(job: JobSpec, url: str) -> JobSpec:
    """While the server does not answer, it is what it was last: what is finished can be reported without it."""
    memo = job.workspace / "cache" / "servers" / f"{digest(url)}.json"
    try:
        version = ReplyServer(url).served().version
        with suppress(OSError):
            write_memo(memo, version)
    except ReplyServerError:
        version = read_memo(memo) or ""
    return replace(job, generation=replace(job.generation, version=version))
