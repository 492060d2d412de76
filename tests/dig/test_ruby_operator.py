"""`rb>`: Ruby methods with arguments from the parameters. What needs a Ruby is left out where there is none."""

from __future__ import annotations

import shutil

import pytest

needs_ruby = pytest.mark.skipif(shutil.which("ruby") is None, reason="there is no `ruby` on the PATH")

JOBS = """
module Jobs
  class Report
    def initialize(day) @day = day end
    def build(rows:, title: 'none')
      Digdag.env.store('built' => "#{@day} #{rows} #{title}")
      Digdag.env.add_subtask(Report, :after, n: 1)
      Digdag.env.add_subtask('echo>' => 'done')
      Digdag.env.add_subtask(:loose, a: 1)
      Digdag.env.subtask_config['_parallel'] = true
    end
    def self.check(n) Digdag.env.export(checked: Digdag.env.params['n']) end
    def everything(**all) Digdag.env.store(zone: all[:timezone], inner: all[:a][:b]) end
    private
    def hidden() end
  end
  class Counted
    def self.new(n) Digdag.env.store(made: n); super() end
    def run() end
  end
  def self.of_module(n = 4) Digdag.env.store(n: n) end
end
def loose(a, b = 2) Digdag.env.store(sum: a + b) end
def gap(a = 1, b = 2) end
def broken
  puts 'about to break'
  deeper
end
def deeper() raise ArgumentError, 'no: ümlaut' end
def leave() exit 7 end
def quit() abort 'enough' end
def endless() endless end
def variables() Digdag.env.store(own: ENV['OWN'], param: ENV['a'].inspect, folder: Dir.pwd) end
def unfit() Digdag.env.store(f: proc { 1 }) end
def early() Digdag.env.store(early: $early) end
$early = Digdag.env.params['a']
"""


@pytest.fixture
def run(project):
    """Runs one method of `jobs.rb`."""
    project.write("jobs.rb", JOBS)

    def run(command, options="", **params):
        return project.run(f"+t: {{rb>: '{command}', require: jobs{options}}}", params=params)

    return run


@needs_ruby
def test_arguments_are_found_by_name_for_instances_classes_modules_and_loose_methods(run):
    assert run("Jobs::Report.build", day="mon", rows=5).store == {"built": "mon 5 none"}
    assert run("::Jobs::Report.check", n=3).export == {"checked": 3}
    assert run("Jobs.of_module").store == {"n": 4}
    assert run("Jobs::Counted.run", n=2).store == {"made": 2}
    assert run("loose", a=1).store == {"sum": 3}
    assert run("Jobs::Report.everything", day=1, a={"b": 5}).store == {"zone": "UTC", "inner": 5}


@needs_ruby
def test_subtasks_are_methods_or_tasks_as_in_a_file(run):
    _, *tasks = run("Jobs::Report.build", day="mon", rows=5).growth
    assert [(task.key, task.operator, task.config) for task in tasks] == [
        ("+wf+t^sub+subtask0", "rb", {"_command": "Jobs::Report.after", "n": 1}),
        ("+wf+t^sub+subtask1", "echo", {"_command": "done"}),
        ("+wf+t^sub+subtask2", "rb", {"_command": "loose", "a": 1}),
    ]
    assert all(task.upstream == () for task in tasks), "they are parallel"


@needs_ruby
def test_an_exception_is_told_with_its_lines_and_without_ours(run, capfd):
    failed = run("broken").error
    assert failed.message == "Ruby command failed with code 1: no: ümlaut (ArgumentError)"
    assert failed.type == "ArgumentError"
    assert capfd.readouterr().out == "about to break\n"
    first, second = failed.traceback.splitlines()
    assert "jobs.rb:29:in " in first and first.endswith(": no: ümlaut (ArgumentError)")
    assert second.startswith("\tfrom ") and "jobs.rb:27:in " in second


@needs_ruby
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("loose", "Method 'loose' requires parameter 'a' but not set (ArgumentError)"),
        ("Jobs::Report.build", "Method 'Jobs::Report.new' requires parameter 'day' but not set (ArgumentError)"),
        ("gap", "Method 'gap' gets parameter 'b' but not 'a' before it (ArgumentError)"),
        ("unfit", "parameters must be made of JSON values, got: Proc (ArgumentError)"),
        ("quit", "enough (SystemExit)"),
        ("endless", "stack level too deep (SystemStackError)"),
        ("Jobs::Nothing.run", "uninitialized constant Jobs::Nothing (NameError)"),
        ("Jobs::Report.hidden", "undefined method"),
        ("nothing", "undefined method"),
    ],
)
def test_what_can_go_wrong(run, command, message):
    given = {} if command == "loose" else {"b": 1}
    assert message in run(command, **given).error.message


@needs_ruby
def test_a_method_may_leave_with_a_code(run):
    assert run("leave").error.message == "Ruby command failed with code 7: called exit (SystemExit)"


@needs_ruby
def test_environment_and_folder_are_those_of_the_task_and_parameters_are_there_while_files_load(run, project):
    (project.root / "below").mkdir()
    (project.root / "jobs.rb").rename(project.root / "below/jobs.rb")
    result = run("variables", ", _env: {OWN: x}, _workdir: below", a=1)
    assert result.store == {"own": "x", "param": "nil", "folder": str(project.root / "below")}
    assert run("early", ", _workdir: below", a=1).store == {"early": 1}


@needs_ruby
def test_the_file_may_be_named_once_for_all_tasks_and_the_ruby_with_arguments(project):
    project.write("tasks/jobs.rb", "class Jobs\n  def go() Digdag.env.store(debug: $DEBUG.inspect) end\nend\n")
    text = "_export: {rb: {require: tasks/jobs, ruby: [ruby, -d]}}\n+t: {rb>: Jobs.go}"
    params = {"rb": {"require": "tasks/jobs", "ruby": ["ruby", "-d"]}}
    assert project.run(text, params=params).store == {"debug": "true"}


@needs_ruby
def test_a_file_that_cannot_be_loaded_is_named(project):
    missing = project.run("+t: {rb>: x, require: tasks/nothing}").error
    assert missing.message.endswith("cannot load such file -- tasks/nothing (LoadError)")
    project.write("half.rb", "def x(\n")
    assert "half.rb:" in project.run("+t: {rb>: x, require: half}").error.message


@needs_ruby
def test_a_script_of_the_task_reads_and_writes_files(project):
    script = "require 'json'; p = JSON.parse(File.read(ARGV[0]))['params']; a = p['a'] + 1"
    text = f'+t:\n  rb>:\n  script: "{script}; File.write(ARGV[1], JSON.generate(store_params: {{a: a}}))"'
    assert project.run(text, params={"a": 1}).store == {"a": 2}


def test_ruby_that_is_not_there(project):
    failed = project.run("+t: {rb>: x, ruby: /no/ruby}")
    assert "could not start `/no/ruby`: No such file" in failed.error.message
    assert project.run("+t: {rb>: }").error.message == "parameter `rb>` or `script` is required but not set"
