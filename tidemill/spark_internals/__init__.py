"""All uses of Spark's private interfaces: the things that PySpark's public interface does not give.

Outside this package no file imports py4j, touches PySpark's private handles, or calls a Java object
(``tests/spark_internals/test_boundary.py``). An access is a small function with a name of ours. Other
packages keep Java objects as values and hand them back, but call no method of them. So an upgrade of Spark
touches this folder alone.

| access to | file |
|---|---|
| the handles that the other files begin with | ``java.py`` |
| the version of Spark, and what is off for it | ``versions.py`` |
| errors of calls into the JVM | ``errors.py`` |
| start, end and loss of the driver's JVM | ``driver.py``, ``driver_end.py`` |
| classes are looked up once | ``class_lookups.py`` |
| settings and views of a session | ``sessions.py`` |
| frames of plans and of tasks, expressions, results | ``frames.py``, ``expressions.py``, ``results.py`` |
| a table of files that we have listed | ``file_index.py``, ``file_relations.py`` |
| the plan that has run; a plan with pipelined exchanges | ``executed_plans.py``, ``pipelined.py`` |
| jobs and their tasks; what Spark tells of them | ``scheduler.py``, ``status_store.py`` |
| hosts that get no tasks | ``slow_nodes.py``, ``SlowNodes.java`` |
| Python workers, and what is sent to them | ``daemon.py``, ``pickling.py`` |
| which task a worker says that it runs | ``task_context.py`` |
| classes that Spark's settings and tables name | ``class_names.py`` |

There are two kinds. A *needed* function raises a SetupError that names it if this Spark lacks its part
(``versions.needed``). A *feature* only makes something faster or nicer: in a Spark of another version than
it was written for, it is off, and one warning at the start says so (``versions.FEATURES``).
"""
