# The inside of an `rb>` task: finds the method, fills its arguments from the parameters, provides `Digdag.env`.
# Called as: ruby_program.rb REQUIRE COMMAND IN OUT; REQUIRE is empty if nothing is to be required.
# Nothing here is newer than Ruby 2.5, because whoever has an old project may have an old Ruby, too.

require 'json'

# Lines that a method prints belong before those that its failure prints.
$stdout.sync = true

module Digdag
  class Env
    # `subtask_config` is for whoever wants more than tasks in it: subtask_config['_parallel'] = true
    attr_reader :params, :store_params, :export_params, :state_params, :subtask_config

    def initialize(params)
      @params = params
      @store_params = {}
      @export_params = {}
      @state_params = {}
      @subtask_config = {}
      @subtasks = 0
    end

    # Give parameters to the tasks that come after this one.
    def store(params)
      @store_params.merge!(as_json(params))
    end

    # Give parameters to the subtasks of this task.
    def export(params)
      @export_params.merge!(as_json(params))
    end

    # Accepted and ignored, as it always was.
    def set_state(params)
      @state_params.merge!(params)
    end

    # Add a task below this one: add_subtask(Klass, :method, key: value), add_subtask(:method, key: value), or a map.
    def add_subtask(*arguments)
      options = arguments.last.is_a?(Hash) ? arguments.pop : {}
      body = as_json(options)
      body = { 'rb>' => command_of(arguments) }.merge(body) unless arguments.empty?
      @subtask_config["+subtask#{@subtasks}"] = body
      @subtasks += 1
    end

    private

    def command_of(arguments)
      *owner, method = arguments
      unless owner.size < 2 && [method, *owner].all? { |one| one.is_a?(Module) || one.respond_to?(:to_sym) }
        raise ArgumentError, 'add_subtask takes a class and the name of its method, the name of a method, or a map'
      end
      [*owner, method].join('.')
    end

    # Without the check, JSON would have the text `#<Proc:0x…>`.
    def as_json(value)
      check(value)
      JSON.parse(JSON.generate(value))
    rescue JSON::GeneratorError => error
      raise ArgumentError, "parameters must be made of JSON values: #{error.message}"
    end

    def check(value)
      case value
      when Hash then value.each_value { |one| check(one) }
      when Array then value.each { |one| check(one) }
      when Proc, Method, UnboundMethod, IO, Thread
        raise ArgumentError, "parameters must be made of JSON values, got: #{value.class}"
      end
    end
  end

  class << self
    attr_accessor :env
  end
end

# Which arguments a method gets: those whose names are among the parameters.
class HeadraceArguments
  def initialize(params)
    @params = params
  end

  # What to call a method with: its positional arguments, and a map of those that it takes by name.
  def for(parameters, name)
    positional = []
    named = {}
    left_out = nil
    parameters.each do |kind, key|
      case kind
      when :req then positional << required(key, name)
      when :opt then left_out = optional(key, name, left_out) { |value| positional << value }
      when :keyreq then named[key] = required(key, name)
      when :key then named[key] = @params[key.to_s] if @params.key?(key.to_s)
      when :keyrest then named = symbols(@params).merge(named)
      end
    end
    [positional, named]
  end

  private

  def required(key, name)
    @params.fetch(key.to_s) { raise ArgumentError, "Method '#{name}' requires parameter '#{key}' but not set" }
  end

  # Positional arguments cannot be left out in the middle: the value would be taken for the one before.
  def optional(key, name, left_out)
    return left_out || key unless @params.key?(key.to_s)
    raise ArgumentError, "Method '#{name}' gets parameter '#{key}' but not '#{left_out}' before it" if left_out

    yield @params[key.to_s]
    nil
  end

  def symbols(params)
    params.map { |key, value| [key.to_sym, value.is_a?(Hash) ? symbols(value) : value] }.to_h
  end
end

# Finds and calls what `rb>` names: `Module::Class.method`, or a method without an owner.
class HeadraceCommand
  def initialize(command, params)
    *path, @name = command.split('.')
    @owner = path.join('.')
    @arguments = HeadraceArguments.new(params)
  end

  def call(main)
    return call_method(main.method(@name), @name) if @owner.empty?

    owner = @owner.split('::').reject(&:empty?).inject(Object) { |scope, part| scope.const_get(part) }
    is_of_instances = owner.is_a?(Class) && owner.public_method_defined?(@name)
    target = is_of_instances ? instance(owner) : owner
    call_method(target.public_method(@name), "#{@owner}#{is_of_instances ? '#' : '.'}#{@name}")
  end

  private

  def instance(owner)
    maker = owner.method(:new)
    # The usual `new` takes anything and hands it on.
    return call_method(maker, "#{@owner}.new") unless maker.owner == Class

    call_method(maker, "#{@owner}.new", owner.instance_method(:initialize).parameters)
  end

  def call_method(method, name, parameters = method.parameters)
    positional, named = @arguments.for(parameters, name)
    # An old Ruby would hand over an empty map as one more argument.
    named.empty? ? method.call(*positional) : method.call(*positional, **named)
  end
end

# Tells of an exception without the lines of this file: a sentence, and for the log what Ruby would have printed.
def headrace_failure(error)
  lines = (error.backtrace || []).reject { |line| line.start_with?("#{__FILE__}:") }
  message = error.is_a?(SystemExit) && error.message == 'exit' ? 'called exit' : error.message
  sentence, *more = message.lines.map(&:chomp)
  # Ruby shows the line that raised a NameError below its message. If that is one of ours, it helps nobody.
  is_theirs = lines.first.equal?(error.backtrace&.first)
  shown = ["#{"#{lines.first}: " if is_theirs}#{sentence} (#{error.class})", *(more if is_theirs)]
  shown += lines.drop(is_theirs ? 1 : 0).map { |line| "\tfrom #{line}" }
  { error: { class: error.class.name, message: sentence.to_s, backtrace: shown } }
end

library, command, source, target = ARGV
params = JSON.parse(File.read(source, encoding: 'UTF-8'))['params']
Digdag.env = Digdag::Env.new(params)
begin
  require library unless library.empty?
  HeadraceCommand.new(command, params).call(self)
  env = Digdag.env
  result = { subtask_config: env.subtask_config, export_params: env.export_params, store_params: env.store_params }
  File.write(target, JSON.generate(result))
rescue SignalException
  raise
rescue Exception => error # also exit, syntax errors and stacks that are too deep: whatever it is, somebody reads it
  File.write(target, JSON.generate(headrace_failure(error)))
  exit(error.is_a?(SystemExit) ? error.status : 1)
end
