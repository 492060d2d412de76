import com.fasterxml.jackson.databind.JsonNode;
import com.google.inject.Binder;
import com.google.inject.Module;
import com.google.inject.multibindings.Multibinder;
import io.digdag.client.config.Config;
import io.digdag.client.config.ConfigElement;
import io.digdag.client.config.ConfigKey;
import io.digdag.spi.Operator;
import io.digdag.spi.OperatorContext;
import io.digdag.spi.OperatorFactory;
import io.digdag.spi.TaskExecutionException;
import io.digdag.spi.TaskRequest;
import io.digdag.spi.TaskResult;
import io.digdag.util.BaseOperator;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The operators of the workflows that are compared: `work>`, which does what its parameters say and keeps what it saw,
 * and small stand-ins for those of Digdag's that decide which tasks there are. `call>` is Digdag's own.
 */
final class Operators implements Module {
    private final Diary diary;

    Operators(Diary diary) {
        this.diary = diary;
    }

    @Override
    public void configure(Binder binder) {
        Multibinder<OperatorFactory> factories = Multibinder.newSetBinder(binder, OperatorFactory.class);
        factories.addBinding().toInstance(factory("work", context -> new Retried(context, () -> work(context))));
        factories.addBinding().toInstance(factory("plain", context -> () -> work(context)));
        factories.addBinding().toInstance(factory("echo", context -> () -> echo(context.getTaskRequest())));
        factories.addBinding().toInstance(factory("notify", context -> () -> echo(context.getTaskRequest())));
        factories.addBinding().toInstance(factory("fail", context -> () -> fail(context.getTaskRequest())));
        factories.addBinding().toInstance(factory("if", context -> () -> choose(context.getTaskRequest())));
        factories.addBinding().toInstance(factory("loop", context -> () -> loop(context.getTaskRequest())));
        factories.addBinding().toInstance(factory("for_each", context -> () -> forEach(context.getTaskRequest())));
    }

    private static OperatorFactory factory(String type, Function<OperatorContext, Operator> create) {
        return new OperatorFactory() {
            @Override
            public String getType() {
                return type;
            }

            @Override
            public Operator newOperator(OperatorContext context) {
                return create.apply(context);
            }
        };
    }

    /** An operator that obeys `_retry` for its own failure, as those do that are derived from Digdag's base class. */
    private static final class Retried extends BaseOperator {
        private final Operator inner;

        Retried(OperatorContext context, Operator inner) {
            super(context);
            this.inner = inner;
        }

        @Override
        public TaskResult runTask() {
            return inner.run();
        }
    }

    // ---- work> -----------------------------------------------------------------------------------------------------

    private TaskResult work(OperatorContext context) {
        TaskRequest request = context.getTaskRequest();
        Config config = request.getConfig();
        diary.begin(request, config);
        poll(request, config);
        boolean fails = config.get("_command", String.class, "").equals("fail");
        if (fails || config.has("fails") && diary.fail(request) < config.get("fails", int.class)) {
            throw new TaskExecutionException("failed on purpose: " + request.getTaskName());
        }
        return TaskResult.defaultBuilder(request)
                .subtaskConfig(config.getNestedOrGetEmpty("_do"))
                .exportParams(prefixed(config, "export_"))
                .storeParams(prefixed(config, "store_"))
                .resetStoreParams(keys(config.getListOrEmpty("resets", String.class)))
                .build();
    }

    /** The parameters whose names begin so, without that; they are not in a map because of how maps are evaluated. */
    private static Config prefixed(Config config, String prefix) {
        Config found = config.getFactory().create();
        for (String key : config.getKeys()) {
            if (key.startsWith(prefix)) {
                found.set(key.substring(prefix.length()), config.getInternalObjectNode().get(key));
            }
        }
        return found;
    }

    private static void poll(TaskRequest request, Config config) {
        int polled = request.getLastStateParams().get("polled", int.class, 0);
        if (polled < config.get("polls", int.class, 0)) {
            Config state = request.getLastStateParams().deepCopy().set("polled", polled + 1);
            throw TaskExecutionException.ofNextPolling(0, ConfigElement.copyOf(state));
        }
    }

    private static List<ConfigKey> keys(List<String> names) {
        List<ConfigKey> keys = new ArrayList<>();
        names.forEach(name -> keys.add(ConfigKey.parse(name)));
        return keys;
    }

    // ---- stand-ins -------------------------------------------------------------------------------------------------

    private static TaskResult echo(TaskRequest request) {
        request.getConfig().get("_command", String.class);
        return TaskResult.empty(request);
    }

    private static TaskResult fail(TaskRequest request) {
        throw new TaskExecutionException(request.getConfig().get("_command", String.class));
    }

    private static TaskResult choose(TaskRequest request) {
        Config config = request.getConfig();
        String branch = config.get("_command", boolean.class) ? "_do" : "_else_do";
        return grown(request, config.getNestedOrGetEmpty(branch));
    }

    private static TaskResult loop(TaskRequest request) {
        Map<String, Config> repetitions = new LinkedHashMap<>();
        for (int i = 0; i < request.getConfig().get("_command", int.class); i++) {
            repetitions.put("+loop-" + i, request.getConfig().getFactory().create().set("i", i));
        }
        return repeated(request, repetitions);
    }

    /** One variable is enough for what is compared: how many are combined, and in which order, is the operator's. */
    private static TaskResult forEach(TaskRequest request) {
        Map<String, Config> repetitions = new LinkedHashMap<>();
        Config variables = request.getConfig().parseNested("_command");
        String name = variables.getKeys().get(0);
        int index = 0;
        for (JsonNode value : variables.parseList(name, JsonNode.class)) {
            String tag = URLEncoder.encode(value.asText(), StandardCharsets.UTF_8).replace("+", "%20");
            Config exported = request.getConfig().getFactory().create().set(name, value);
            repetitions.put("+for-0=" + name + "=" + index + "=" + tag, exported);
            index++;
        }
        return repeated(request, repetitions);
    }

    private static TaskResult repeated(TaskRequest request, Map<String, Config> repetitions) {
        Config config = request.getConfig();
        Config body = config.getNested("_do");
        Config subtasks = config.getFactory().create();
        if (config.has("_parallel")) {
            subtasks.set("_parallel", config.get("_parallel", JsonNode.class));
        }
        repetitions.forEach((name, exported) -> {
            Config copy = body.deepCopy();
            copy.getNestedOrSetEmpty("_export").setAll(exported);
            subtasks.set(name, copy);
        });
        return grown(request, subtasks);
    }

    private static TaskResult grown(TaskRequest request, Config subtasks) {
        return TaskResult.defaultBuilder(request).subtaskConfig(subtasks).build();
    }
}
