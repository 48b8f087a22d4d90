"""Which program a server of replies runs: part of what determines a result, and known only by asking it."""

from contextlib import suppress
from dataclasses import replace

from ianvs.base.errors import ReplyServerError
from ianvs.config.spec import JobSpec
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.processes.reply_server import ReplyServer
from ianvs.store.keys import digest


def with_server_version(job: JobSpec) -> JobSpec:
    """The job with the version of its server. Of one that does not answer, that of the last time the workspace asked,
    so that what is finished can be reported without it; else ""."""
    spec = job.generation
    if spec.engine != "server" or spec.url is None:
        return job
    memo = job.workspace / "cache" / "servers" / f"{digest(spec.url)}.json"
    try:
        version = ReplyServer(spec.url).served().version
    except ReplyServerError:
        version = str(read_memo(memo) or "")
    else:
        with suppress(OSError):
            write_memo(memo, version)
    return replace(job, generation=replace(spec, version=version))
