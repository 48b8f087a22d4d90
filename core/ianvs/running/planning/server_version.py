"""The version of a model server, which is part of a result's identity."""

from contextlib import suppress
from dataclasses import replace

from ianvs.base.errors import ReplyServerError
from ianvs.config.spec import JobSpec
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.processes.reply_server import ReplyServer
from ianvs.store.keys import digest


def with_server_version(job: JobSpec, url: str) -> JobSpec:
    """Return the job with the server's version.

    Without a response, the last known one, so that finished cases can be reported.
    """
    memo = job.workspace / "cache" / "servers" / f"{digest(url)}.json"
    try:
        version = ReplyServer(url).served().version
        with suppress(OSError):
            write_memo(memo, version)
    except ReplyServerError:
        version = read_memo(memo) or ""
    return replace(job, generation=replace(job.generation, version=version))
