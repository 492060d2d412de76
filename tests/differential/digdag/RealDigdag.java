import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.base.Optional;
import io.digdag.client.config.Config;
import io.digdag.client.config.ConfigElement;
import io.digdag.client.config.ConfigFactory;
import io.digdag.core.DigdagEmbed;
import io.digdag.core.LocalSite;
import io.digdag.core.agent.LocalWorkspaceManager;
import io.digdag.core.agent.WorkspaceManager;
import io.digdag.core.archive.ProjectArchive;
import io.digdag.core.archive.ProjectArchiveLoader;
import io.digdag.core.archive.WorkflowResourceMatcher;
import io.digdag.core.database.TransactionManager;
import io.digdag.core.repository.ResourceNotFoundException;
import io.digdag.core.session.ArchivedTask;
import io.digdag.core.session.StoredSessionAttemptWithSession;
import io.digdag.core.workflow.AttemptRequest;
import io.digdag.core.workflow.WorkflowExecutor;
import io.digdag.spi.CommandExecutor;
import io.digdag.spi.ScheduleTime;
import io.digdag.spi.SecretStore;
import io.digdag.spi.SecretStoreManager;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs projects in the engine of a real Digdag, in memory and all at once, and tells how they ended.
 *
 * Reads a JSON object with `id`, `files` and `params` from each line of its input; the workflow is the file called `id`
 * and `.dig`. Writes a line with `id` and either `refused`, why the file is none, or `done`, `success`, `tasks` with an
 * entry for each row of the database, and `story` with one for each call of an operator.
 */
public final class RealDigdag {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int PATIENCE_SECONDS = 1800;

    private final TransactionManager transactions;
    private final LocalSite site;
    private final ProjectArchiveLoader loader;
    private final ConfigFactory configs;
    private final Diary diary;

    private RealDigdag(DigdagEmbed digdag, Diary diary) {
        this.transactions = digdag.getTransactionManager();
        this.site = digdag.getLocalSite();
        this.loader = digdag.getInjector().getInstance(ProjectArchiveLoader.class);
        this.configs = digdag.getInjector().getInstance(ConfigFactory.class);
        this.diary = diary;
    }

    public static void main(String[] arguments) {
        // Whatever else prints does so on the other stream.
        PrintStream out = System.out;
        System.setOut(System.err);
        int code = 0;
        try {
            runAll(out);
        } catch (Throwable error) {
            error.printStackTrace();
            code = 1;
        }
        out.flush();
        // Nothing is kept, so nothing needs to be closed; Digdag's threads would go on without an end.
        Runtime.getRuntime().halt(code);
    }

    private static void runAll(PrintStream out) throws Exception {
        Diary diary = new Diary();
        DigdagEmbed digdag = embed(diary);
        RealDigdag real = new RealDigdag(digdag, diary);
        Map<String, Object> started = real.startAll();
        Instant end = Instant.now().plusSeconds(PATIENCE_SECONDS);
        digdag.getInjector().getInstance(WorkflowExecutor.class)
                .runWhile(() -> !real.allDone(started.values()) && Instant.now().isBefore(end));
        for (Map.Entry<String, Object> entry : started.entrySet()) {
            out.println(JSON.writeValueAsString(real.transactions.begin(() -> real.told(entry), Exception.class)));
        }
    }

    private static DigdagEmbed embed(Diary diary) {
        return new DigdagEmbed.Bootstrap()
                .setSystemConfig(ConfigElement.ofMap(Map.of("database.type", "memory", "agent.max-task-threads", "4")))
                .withExtensionLoader(false)
                .withScheduleExecutor(false)
                .addModules(binder -> binder.bind(CommandExecutor.class).toInstance((path, request, process) -> null))
                .addModules(binder -> binder.bind(SecretStoreManager.class).toInstance(RealDigdag::noSecrets))
                .addModules(new Operators(diary))
                .overrideModulesWith(binder -> binder.bind(WorkspaceManager.class).to(LocalWorkspaceManager.class))
                .initializeWithoutShutdownHook();
    }

    private static SecretStore noSecrets(int site) {
        return (project, scope, key) -> Optional.absent();
    }

    private Map<String, Object> startAll() throws Exception {
        Map<String, Object> started = new LinkedHashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode project = JSON.readTree(line);
            try {
                Long attempt = transactions.begin(() -> start(project), Exception.class);
                started.put(project.get("id").asText(), attempt);
            } catch (Exception refused) {
                started.put(project.get("id").asText(), refused);
            }
        }
        return started;
    }

    private Long start(JsonNode project) throws Exception {
        Path folder = Files.createTempDirectory("digdag-");
        for (String file : (Iterable<String>) () -> project.get("files").fieldNames()) {
            Path path = folder.resolve(file);
            Files.createDirectories(path.getParent());
            Files.writeString(path, project.get("files").get(file).asText());
        }
        String name = project.get("id").asText();
        Config params = configs.fromJsonString(project.has("params") ? project.get("params").toString() : "{}");
        WorkflowResourceMatcher matcher = WorkflowResourceMatcher.ofSingleFile(folder, folder.resolve(name + ".dig"));
        ProjectArchive archive = loader.load(folder, matcher, configs.create());
        LocalSite.StoreWorkflowResult stored =
                site.storeLocalWorkflowsWithoutSchedule(name, "1", archive.getArchiveMetadata());
        AttemptRequest request = site.getAttemptBuilder().buildFromStoredWorkflow(
                stored.getRevision(),
                stored.getWorkflowDefinitions().get(0),
                params.set("_project_path", folder.toString()),
                ScheduleTime.runNow(Instant.parse("2026-02-03T00:00:00Z")));
        return site.submitWorkflow(request, stored.getWorkflowDefinitions().get(0)).getId();
    }

    private boolean allDone(Collection<Object> started) {
        return started.stream().allMatch(one -> one instanceof Exception || isDone((Long) one));
    }

    private boolean isDone(long id) {
        try {
            return site.getSessionStore().getAttemptById(id).getStateFlags().isDone();
        } catch (ResourceNotFoundException error) {
            throw new IllegalStateException(error);
        }
    }

    // ---- what came of it -------------------------------------------------------------------------------------------

    private ObjectNode told(Map.Entry<String, Object> started) throws Exception {
        ObjectNode told = JSON.createObjectNode().put("id", started.getKey());
        if (started.getValue() instanceof Exception) {
            return told.put("refused", ((Exception) started.getValue()).toString());
        }
        long id = (Long) started.getValue();
        StoredSessionAttemptWithSession attempt = site.getSessionStore().getAttemptById(id);
        told.put("done", attempt.getStateFlags().isDone());
        told.put("success", attempt.getStateFlags().isSuccess());
        told.set("tasks", tasks(site.getSessionStore().getTasksOfAttempt(id)));
        told.putArray("story").addAll(diary.of(id));
        return told;
    }

    private static ArrayNode tasks(List<ArchivedTask> rows) {
        Map<Long, String> names = new HashMap<>();
        rows.forEach(row -> names.put(row.getId(), row.getFullName()));
        ArrayNode tasks = JSON.createArrayNode();
        for (ArchivedTask row : rows) {
            ObjectNode task = tasks.addObject().put("id", row.getId()).put("name", row.getFullName());
            task.put("state", row.getState().name().toLowerCase());
            task.put("parent", row.getParentId().orNull());
            task.putArray("upstream");
            row.getUpstreams().forEach(id -> task.withArray("upstream").add(names.get(id)));
            task.put("error", row.getError().get("message", String.class, null));
        }
        return tasks;
    }
}
