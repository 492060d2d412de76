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
import io.digdag.core.repository.StoredWorkflowDefinition;
import io.digdag.core.session.ArchivedTask;
import io.digdag.core.session.StoredSessionAttemptWithSession;
import io.digdag.core.session.TaskStateCode;
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
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/**
 * Runs projects in the engine of a real Digdag, in memory and all at once, and tells how they ended.
 *
 * Reads a JSON object with `id`, `files` and perhaps `params` from each line of its input; the workflow is the file called
 * `id` and `.dig`. If it is `resumed`, what failed is tried again. Writes a line with `id` and either `refused`, why the
 * file is none, or `attempts`: `done`, `success`, `tasks` with an entry for each row of the database, and `story` with one
 * for each call of an operator.
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
        WorkflowExecutor executor = digdag.getInjector().getInstance(WorkflowExecutor.class);
        List<Project> projects = real.startAll();
        executor.runWhile(real.untilDone(projects));
        for (Project project : projects) {
            if (project.isResumed && project.refused == null) {
                real.transactions.begin(() -> real.resume(project), Exception.class);
            }
        }
        executor.runWhile(real.untilDone(projects));
        for (Project project : projects) {
            out.println(JSON.writeValueAsString(real.transactions.begin(() -> real.told(project), Exception.class)));
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

    /** A project, its workflow in Digdag's database and the attempts to run it, or why there are none. */
    private static final class Project {
        final JsonNode given;
        final boolean isResumed;
        final List<Long> attempts = new ArrayList<>();
        LocalSite.StoreWorkflowResult stored;
        Config params;
        Exception refused;

        Project(JsonNode given) {
            this.given = given;
            this.isResumed = given.path("resumed").asBoolean();
        }

        String name() {
            return given.get("id").asText();
        }
    }

    private List<Project> startAll() throws Exception {
        List<Project> projects = new ArrayList<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Project project = new Project(JSON.readTree(line));
            projects.add(project);
            try {
                transactions.begin(() -> start(project), Exception.class);
            } catch (Exception refused) {
                project.refused = refused;
            }
        }
        return projects;
    }

    private boolean start(Project project) throws Exception {
        Path folder = Files.createTempDirectory("project-");
        JsonNode files = project.given.get("files");
        for (String file : (Iterable<String>) files::fieldNames) {
            Path path = folder.resolve(file);
            Files.createDirectories(path.getParent());
            Files.writeString(path, files.get(file).asText());
        }
        String file = project.name() + ".dig";
        ProjectArchive archive = loader.load(
                folder, WorkflowResourceMatcher.ofSingleFile(folder, folder.resolve(file)), configs.create());
        project.stored = site.storeLocalWorkflowsWithoutSchedule(project.name(), "1", archive.getArchiveMetadata());
        project.params = configs.create().set("_project_path", folder.toString());
        if (project.given.has("params")) {
            project.params.merge(configs.fromJsonString(project.given.get("params").toString()));
        }
        return attempt(project, Optional.absent(), Optional.absent(), List.of());
    }

    /** Try again with all that had succeeded, as Digdag's server does if it is asked to resume what failed. */
    private boolean resume(Project project) throws Exception {
        long failed = project.attempts.get(0);
        if (site.getSessionStore().getAttemptById(failed).getStateFlags().isSuccess()) {
            return false;
        }
        List<Long> succeeded = new ArrayList<>();
        for (ArchivedTask task : site.getSessionStore().getTasksOfAttempt(failed)) {
            if (task.getState() == TaskStateCode.SUCCESS) {
                succeeded.add(task.getId());
            }
        }
        return attempt(project, Optional.of("again"), Optional.of(failed), succeeded);
    }

    private boolean attempt(Project project, Optional<String> name, Optional<Long> resumed, List<Long> succeeded)
            throws Exception {
        StoredWorkflowDefinition workflow = project.stored.getWorkflowDefinitions().get(0);
        AttemptRequest request = site.getAttemptBuilder().buildFromStoredWorkflow(
                project.stored.getRevision(),
                workflow,
                project.params,
                ScheduleTime.runNow(Instant.parse("2026-02-03T00:00:00Z")),
                name,
                resumed,
                succeeded);
        return project.attempts.add(site.submitWorkflow(request, workflow).getId());
    }

    private BooleanSupplier untilDone(List<Project> projects) {
        Instant end = Instant.now().plusSeconds(PATIENCE_SECONDS);
        return () -> Instant.now().isBefore(end)
                && !projects.stream().flatMap(project -> project.attempts.stream()).allMatch(this::isDone);
    }

    private boolean isDone(long id) {
        try {
            return site.getSessionStore().getAttemptById(id).getStateFlags().isDone();
        } catch (ResourceNotFoundException error) {
            throw new IllegalStateException(error);
        }
    }

    // ---- what came of it -------------------------------------------------------------------------------------------

    private ObjectNode told(Project project) throws Exception {
        ObjectNode told = JSON.createObjectNode().put("id", project.name());
        if (project.refused != null) {
            return told.put("refused", project.refused.toString());
        }
        for (long id : project.attempts) {
            told.withArray("attempts").add(told(id));
        }
        return told;
    }

    private ObjectNode told(long id) throws Exception {
        StoredSessionAttemptWithSession attempt = site.getSessionStore().getAttemptById(id);
        ObjectNode told = JSON.createObjectNode();
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
