"""Load a Python file and compile the DAGs in it. This runs user code: only for processes that may be hurt by it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType

from headrace.authoring.dag import scope
from headrace.authoring.dag.compiling import compile_dag
from headrace.authoring.dag.dags import DAG
from headrace.authoring.dag.plugin_folder import put_plugins_on_path
from headrace.authoring.dag.told_slots import tell_slot
from headrace.authoring.dag.unsupported import once_per_file
from headrace.authoring.dag.user_frames import user_frames, user_traceback
from headrace.authoring.languages import SlotQuestion, ToldSlot
from headrace.definition import Workflow
from headrace.errors import DefinitionError, HeadraceError, LoadError

# Named, not imported: the room of other orchestrators' import paths builds on this one.
_IMPORT_HOOK = "headrace.compat.airflow"
# Few files are archives, and every task process would have what unpacks them in memory.
_ZIPPED = "headrace.authoring.dag.zipped"


@dataclass(frozen=True, slots=True)
class DagFile:
    """A loaded file: its compiled workflows, and its DAG objects for the process that runs their tasks."""

    root: Path
    file: str
    workflows: tuple[Workflow, ...]
    dags: dict[str, DAG]
    folder: str = field(init=False)
    """Where the templates are that its tasks name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", str((self.root / self.file).parent))

    def tell_slot(self, question: SlotQuestion) -> ToldSlot | None:
        """Ask the timetable that a user wrote for one of these DAGs."""
        dag = self.dags.get(question.workflow)
        return None if dag is None else tell_slot(dag, question)


def load_dag_file(root: Path, file: str, content: bytes | None = None) -> DagFile:
    """Execute one file and compile its DAGs; LoadError or DefinitionError point at the user's line.

    With `content`, these bytes are executed in place of the file's.
    """
    root = root.resolve()
    serve_import_paths()
    put_plugins_on_path()
    dags = _by_id(list(_collect_all(root, file, content)), root, file)
    try:
        workflows = tuple(once_per_file(compile_dag(dag, root) for dag in dags.values()))
    except HeadraceError:
        raise
    except Exception as error:
        raise LoadError(f"`{file}` could not be compiled: {_describe(error)}", file=file) from error
    return DagFile(root=root, file=file, workflows=workflows, dags=dags)


def serve_import_paths() -> None:
    """Have `import airflow` lead to our classes in this process."""
    importlib.import_module(_IMPORT_HOOK).install()


def _collect_all(root: Path, file: str, content: bytes | None) -> Iterator[DAG]:
    path = root / file
    if path.suffix != ".zip":
        _put_on_path(path.parent, root)
        yield from _collect(root, file, content)
        return
    zipped = importlib.import_module(_ZIPPED)
    archive = path if content is None else zipped.written_out(content, path)
    _put_on_path(root, archive)
    for name, module in zipped.zipped_modules(archive, file).items():
        yield from _collect(root, f"{file}/{name}", module)


def _put_on_path(*folders: Path) -> None:
    """The last comes first; tasks import from there, too, so they stay."""
    for folder in dict.fromkeys(map(str, folders)):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)


def _collect(root: Path, file: str, content: bytes | None) -> list[DAG]:
    path = root / file
    module = ModuleType(module_name(path))
    module.__file__ = str(path)
    code = _compiled(root, file, content)
    sys.modules[module.__name__] = module
    with scope.collecting() as entered:
        _execute(code, module, root, file)
    found = {id(dag): dag for dag in [*entered, *vars(module).values()] if isinstance(dag, DAG)}
    return sorted(found.values(), key=lambda dag: dag.created)


def module_name(path: Path) -> str:
    """What the module of a DAG file is called: unlike any other, and the same in every process."""
    return f"headrace_dag_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}_{path.stem}"


def _compiled(root: Path, file: str, content: bytes | None) -> CodeType:
    # Not through the import system: its bytecode cache takes an edit within the same second for no edit.
    try:
        source = (root / file).read_bytes() if content is None else content
        code = compile(source, str(root / file), "exec", dont_inherit=True)
        if content is not None:
            _show_lines_of(content, str(root / file))
        return code
    except OSError as error:
        raise LoadError(f"`{file}` could not be read: {error.strerror}", file=file) from error
    except (SyntaxError, ValueError) as error:
        raise _load_error(error, root, file) from error


def _show_lines_of(content: bytes, path: str) -> None:
    """Have tracebacks quote these lines, whatever the file holds by then."""
    text = importlib.util.decode_source(content)
    # Without a time of modification the entry is not compared with the file.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


def _execute(code: CodeType, module: ModuleType, root: Path, file: str) -> None:
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        line = _line(error, root, file)
        text = "" if error.code is None else repr(error.code)
        raise LoadError(f"`{file}` called sys.exit({text}) while it was loaded", file=line[0], line=line[1]) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _load_error(error, root, file) from error


def _load_error(error: BaseException, root: Path, file: str) -> LoadError:
    place, line = _line(error, root, file)
    hint = None
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"install the package that provides `{error.name}`, or put the module beside the file or in its project"
    return LoadError(
        f"`{file}` could not be loaded: {_describe(error)}",
        hint=hint,
        file=place,
        line=line,
        detail=user_traceback(error, root),
    )


def _line(error: BaseException, root: Path, file: str) -> tuple[str, int | None]:
    if isinstance(error, SyntaxError) and error.filename:
        return _relative(error.filename, root), error.lineno
    frames = user_frames(error, root)
    return (_relative(frames[-1].filename, root), frames[-1].lineno) if frames else (file, None)


def _relative(filename: str, root: Path) -> str:
    path = Path(filename)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else filename


def _describe(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _was_meant_to_have_some(path: Path) -> bool:
    """Whether a call was forgotten; a module that makes DAGs only for others is fine without any."""
    try:
        return path.suffix == ".zip" or b"@dag" in path.read_bytes()
    except OSError:
        return True


def _by_id(dags: list[DAG], root: Path, file: str) -> dict[str, DAG]:
    if not dags and _was_meant_to_have_some(root / file):
        raise LoadError(
            f"`{file}` has no DAG",
            hint="create one with `with DAG(...)` at the top level of the file, or call your `@dag` function there",
            file=file,
        )
    found: dict[str, DAG] = {}
    for dag in dags:
        other = found.setdefault(dag.dag_id, dag)
        if other is not dag:
            raise DefinitionError(
                f"`{file}` has two DAGs with the id `{dag.dag_id}`, the first one at line {other.place[1]}",
                file=_relative(dag.place[0], root),
                line=dag.place[1],
            )
    return found
