"""`docker:` of scripts: there are no containers here, and the task's log says so."""

from __future__ import annotations

import logging
import os

from headrace.operators.dig.contract import Job

log = logging.getLogger(__name__)


def tell_of_docker(job: Job, program: list[str]) -> None:
    """Say of a task that is to run in a container, by its own word or an inherited one, what it runs on instead."""
    docker = job.params.raw("docker")
    if docker is None:
        return
    image = f" (image `{docker['image']}`)" if isinstance(docker, dict) and docker.get("image") else ""
    log.warning(
        "`docker:`%s is ignored: there is no container, `%s>` runs `%s` on the host `%s` itself",
        *(image, job.operator, " ".join(program), os.uname().nodename),
    )
