import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.digdag.client.config.Config;
import io.digdag.spi.TaskRequest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What the operators did, attempt by attempt and in the order in which it happened. */
final class Diary {
    private final Map<Long, List<ObjectNode>> entries = new HashMap<>();
    private final Map<String, Integer> failures = new HashMap<>();

    /** Keep that a task begins and which of the parameters that tests use it sees. */
    synchronized void begin(TaskRequest request, Config config) {
        ObjectNode entry = JsonNodeFactory.instance.objectNode().put("task", request.getTaskName());
        entry.set("sees", seen(config));
        entries.computeIfAbsent(request.getAttemptId(), id -> new ArrayList<>()).add(entry);
    }

    /** Count a failure on purpose; returns how many there were before, in earlier attempts, too. */
    synchronized int fail(TaskRequest request) {
        return failures.merge(request.getSessionId() + request.getTaskName(), 1, Integer::sum) - 1;
    }

    synchronized List<ObjectNode> of(long attempt) {
        return entries.getOrDefault(attempt, new ArrayList<>());
    }

    private static ObjectNode seen(Config config) {
        ObjectNode found = JsonNodeFactory.instance.objectNode();
        config.getInternalObjectNode().fields().forEachRemaining(field -> {
            if (field.getKey().length() == 1) {
                found.set(field.getKey(), field.getValue());
            }
        });
        if (config.has("error")) {
            String message = config.getNested("error").get("message", String.class, "");
            found.put("error", message.startsWith("failed on purpose") ? message : "in words of the engine");
        }
        return found;
    }
}
