package jdk.nashorn.api.scripting;

import java.io.Reader;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.script.AbstractScriptEngine;
import javax.script.Bindings;
import javax.script.Invocable;
import javax.script.ScriptContext;
import javax.script.ScriptEngine;
import javax.script.ScriptEngineFactory;
import javax.script.ScriptException;
import javax.script.SimpleBindings;
import org.openjdk.nashorn.api.scripting.NashornException;
import org.openjdk.nashorn.api.scripting.ScriptObjectMirror;

/**
 * The Nashorn that is a library, under the name that it had when it was a part of Java.
 *
 * Digdag makes an engine for each task and has it compile moment.js, which takes longer than all the rest. Here engines
 * with the same options share their compiled code; what a script sees and leaves behind is still its engine's own.
 */
public final class NashornScriptEngineFactory {
    private final org.openjdk.nashorn.api.scripting.NashornScriptEngineFactory factory =
            new org.openjdk.nashorn.api.scripting.NashornScriptEngineFactory();
    private final Map<List<String>, ScriptEngine> engines = new ConcurrentHashMap<>();

    public ScriptEngine getScriptEngine(String... options) {
        return new Fresh(engines.computeIfAbsent(List.of(options), list -> factory.getScriptEngine(options)));
    }

    private static final class Fresh extends AbstractScriptEngine implements Invocable {
        private final ScriptEngine shared;
        private final ScriptObjectMirror global;

        Fresh(ScriptEngine shared) {
            this.shared = shared;
            this.global = (ScriptObjectMirror) shared.createBindings();
        }

        @Override
        public Object eval(String script, ScriptContext ignored) throws ScriptException {
            return shared.eval(script, global);
        }

        @Override
        public Object eval(Reader script, ScriptContext ignored) throws ScriptException {
            return shared.eval(script, global);
        }

        @Override
        public Object invokeFunction(String name, Object... arguments) throws ScriptException {
            try {
                return global.callMember(name, arguments);
            } catch (NashornException error) {
                throw (ScriptException) new ScriptException(error.getMessage()).initCause(error);
            }
        }

        @Override
        public Object invokeMethod(Object object, String name, Object... arguments) {
            throw new UnsupportedOperationException();
        }

        @Override
        public <T> T getInterface(Class<T> type) {
            throw new UnsupportedOperationException();
        }

        @Override
        public <T> T getInterface(Object object, Class<T> type) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Bindings createBindings() {
            return new SimpleBindings();
        }

        @Override
        public ScriptEngineFactory getFactory() {
            return shared.getFactory();
        }
    }
}
