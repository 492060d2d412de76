"""One span per run and one per try, for OpenTelemetry, made when a run has ended out of what the store says.

Only `spans` needs OpenTelemetry's libraries (the extra `otel`), and is imported if its variables ask for traces.
"""

from headrace.tracing.exporting import TraceExporter, trace_exporter

__all__ = ["TraceExporter", "trace_exporter"]
