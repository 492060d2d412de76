"""Brings the code of pushed revisions to this machine before their tasks start."""

from __future__ import annotations

import msgspec

from headrace.archives.folders import RevisionFolders
from headrace.errors import HeadraceError, StoreUnreachableError
from headrace.handoff import TaskRequest, TaskResult, failed
from headrace.store import Store, archive_content


class Placing:
    """Unpacks each archive once; everybody on the machine shares its folder."""

    def __init__(self, store: Store, folders: RevisionFolders) -> None:
        self._store = store
        self._folders = folders

    def placed(self, request: TaskRequest) -> TaskRequest | TaskResult:
        """The request with the folder of its code as its root, or a failure that says why there is none."""
        source = request.source
        if not source.archive:
            return request
        try:
            root = self._folders.folder(source.archive, lambda: self._fetch(source.archive))
        except StoreUnreachableError:
            # It is no fault of the task: whoever reaches the store takes it, in the same try.
            return TaskResult(task_id=request.task_id, fence=request.fence, outcome="stopped")
        except (HeadraceError, OSError) as error:
            message = f"could not unpack the pushed files of project `{request.run.project}`: {error}"
            return failed(request, "LoadError", message)
        return msgspec.structs.replace(request, source=msgspec.structs.replace(source, root=str(root)))

    def _fetch(self, digest: str) -> bytes | None:
        with self._store.read() as tx:
            return archive_content(tx, digest)
