# The inside of an `rb>` task: finds the method, fills its arguments from the parameters, provides `Digdag.env`.
# Called as: ruby_program.rb COMMAND IN OUT

require 'json'

module Digdag
  class Env
    attr_reader :params, :store_params, :export_params, :subtasks

    def initialize(params)
      @params = params
      @store_params = {}
      @export_params = {}
      @subtasks = {}
    end

    # Give parameters to the tasks that come after this one.
    def store(params)
      @store_params.merge!(params)
    end

    # Give parameters to the subtasks of this task.
    def export(params)
      @export_params.merge!(params)
    end

    def set_state(params) end

    # Add a task below this one: add_subtask(Klass, :method, key: value), add_subtask(:method, key: value), or a map.
    def add_subtask(*arguments, **named)
      options = arguments.last.is_a?(Hash) ? arguments.pop : {}
      body = options.merge(named)
      body = { 'rb>' => command_of(arguments) }.merge(body) unless arguments.empty?
      @subtasks["+subtask#{@subtasks.size}"] = JSON.parse(JSON.generate(body))
    end

    private

    def command_of(arguments)
      case arguments
      in [Module => owner, Symbol | String => method] then "#{owner.name}.#{method}"
      in [Symbol | String => method] then method.to_s
      else raise ArgumentError, 'add_subtask takes a class and the name of its method, the name of a method, or a map'
      end
    end
  end

  class << self
    attr_accessor :env
  end
end

# Which arguments a method gets: those whose names are among the parameters.
class Arguments
  def initialize(params)
    @params = params
  end

  def call(method, name)
    positional = []
    named = {}
    method.parameters.each do |kind, key|
      case kind
      when :req, :opt then take(key, kind == :req, name) { |value| positional << value }
      when :keyreq, :key then take(key, kind == :keyreq, name) { |value| named[key] = value }
      when :keyrest then named = @params.transform_keys(&:to_sym).merge(named)
      end
    end
    [positional, named]
  end

  private

  def take(key, is_required, name)
    if @params.key?(key.to_s)
      yield @params[key.to_s]
    elsif is_required
      raise ArgumentError, "Method '#{name}' requires parameter '#{key}' but not set"
    end
  end
end

def run_command(command, params)
  arguments = Arguments.new(params)
  *path, name = command.split('.')
  if path.empty?
    positional, named = arguments.call(method(name), name)
    return send(name, *positional, **named)
  end
  owner = path.join('.').split('::').reject(&:empty?).inject(Object) { |scope, part| scope.const_get(part) }
  target = owner
  if owner.is_a?(Class) && owner.method_defined?(name)
    positional, named = arguments.call(owner.instance_method(:initialize), 'initialize')
    target = owner.new(*positional, **named)
  end
  positional, named = arguments.call(target.method(name), name)
  target.public_send(name, *positional, **named)
end

command, source, target = ARGV
params = JSON.parse(File.read(source, encoding: 'UTF-8'))
Digdag.env = Digdag::Env.new(params)
begin
  run_command(command, params)
  env = Digdag.env
  result = { subtask_config: env.subtasks, export_params: env.export_params, store_params: env.store_params }
  File.write(target, JSON.generate(result))
rescue StandardError, ScriptError => error
  warn error.full_message
  failure = { class: error.class.name, message: error.message, backtrace: error.backtrace }
  File.write(target, JSON.generate(error: failure))
  exit 1
end
