package tidemill;

import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.function.BiFunction;

import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.HealthTracker;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.util.Clock;
import org.apache.spark.util.SystemClock;

/**
 * Gives no tasks to hosts that have been slow. Spark's scheduler asks its HealthTracker whether an executor gets
 * any, and this one says no for a while where a copy of a task came first elsewhere.
 *
 * Some host is always left: one is blocked only where an executor of another one is there, and when that
 * has gone nobody is. All that is asked or changed here is so under the scheduler's lock.
 */
public final class SlowNodes extends HealthTracker {
    private static final int MOST_TOLD = 1000;

    private final TaskSchedulerImpl scheduler;
    private final long millis;
    private final Clock clock;
    /** Whether the user has asked Spark to exclude executors whose tasks fail. */
    private final boolean countsFailures;
    /** By host, in milliseconds since 1970. */
    private final Map until = new HashMap();
    private final ArrayDeque told = new ArrayDeque();

    public SlowNodes(SparkContext context, TaskSchedulerImpl scheduler, long millis, Clock clock) {
        super(context.listenerBus(), conf(context, scheduler), client(context), clock);
        this.scheduler = scheduler;
        this.millis = millis;
        this.clock = clock;
        this.countsFailures = scheduler.healthTrackerOpt().isDefined();
    }

    /** Where no failures are counted, how often a task may fail must not fit the other settings. */
    private static SparkConf conf(SparkContext context, TaskSchedulerImpl scheduler) {
        boolean countsFailures = scheduler.healthTrackerOpt().isDefined();
        return countsFailures ? context.conf() : new SparkConf(false);
    }

    private static scala.Option client(SparkContext context) {
        SchedulerBackend backend = context.schedulerBackend();
        return backend instanceof ExecutorAllocationClient ? new scala.Some(backend) : scala.Option.empty();
    }

    public boolean isExecutorExcluded(String executor) {
        synchronized (this.scheduler) {
            if (super.isExecutorExcluded(executor)) {
                return true;
            }
            scala.Option host = this.scheduler.executorIdToHost().get(executor);
            return host.isDefined() && this.isBlocked((String) host.get()) && this.isLeft("");
        }
    }

    public void updateExcludedForSuccessfulTaskSet(int stage, int attempt, scala.collection.mutable.HashMap failures) {
        if (this.countsFailures) {
            super.updateExcludedForSuccessfulTaskSet(stage, attempt, failures);
        }
    }

    /** A line for each time that a host was blocked: host, from when and until when, by which stage and task. */
    public String told() {
        synchronized (this.scheduler) {
            StringBuilder lines = new StringBuilder();
            for (Iterator each = this.told.iterator(); each.hasNext();) {
                lines.append((String) each.next()).append("\n");
            }
            return lines.toString();
        }
    }

    public void block(TaskInfo slow, int stage) {
        synchronized (this.scheduler) {
            if (!this.isLeft(slow.host())) {
                return;
            }
            long now = this.clock.getTimeMillis();
            this.until.put(slow.host(), Long.valueOf(now + this.millis));
            this.told.addLast(slow.host() + " " + now + " " + (now + this.millis) + " " + stage + " " + slow.index());
            if (this.told.size() > MOST_TOLD) {
                this.told.removeFirst();
            }
        }
    }

    private boolean isBlocked(String host) {
        Long end = (Long) this.until.get(host);
        return end != null && end.longValue() > this.clock.getTimeMillis();
    }

    /** Whether there is an executor that may be given tasks, on another host than that. */
    private boolean isLeft(String besides) {
        for (scala.collection.Iterator each = this.scheduler.executorIdToHost().iterator(); each.hasNext();) {
            scala.Tuple2 one = (scala.Tuple2) each.next();
            String executor = (String) one._1();
            String host = (String) one._2();
            if (!host.equals(besides) && !this.isBlocked(host) && !super.isExecutorExcluded(executor)
                    && !this.isNodeExcluded(host) && this.scheduler.getExecutorDecommissionState(executor).isEmpty()) {
                return true;
            }
        }
        return false;
    }
}

/** Sees copies come first: the first attempt is still under way then. */
final class Watch extends SparkListener {
    private final SlowNodes nodes;
    /** By stage and attempt at it, the first attempts under way by the number of the task. */
    private final Map stages = new HashMap();

    Watch(SlowNodes nodes) {
        this.nodes = nodes;
    }

    public void onTaskStart(SparkListenerTaskStart begun) {
        if (!begun.taskInfo().speculative()) {
            String stage = begun.stageId() + "." + begun.stageAttemptId();
            Map tasks = (Map) this.stages.get(stage);
            if (tasks == null) {
                tasks = new HashMap();
                this.stages.put(stage, tasks);
            }
            tasks.put(Integer.valueOf(begun.taskInfo().index()), begun.taskInfo());
        }
    }

    public void onTaskEnd(SparkListenerTaskEnd ended) {
        Map tasks = (Map) this.stages.get(ended.stageId() + "." + ended.stageAttemptId());
        TaskInfo info = ended.taskInfo();
        TaskInfo first = tasks == null || info == null ? null : (TaskInfo) tasks.get(Integer.valueOf(info.index()));
        if (first == null) {
            return;
        }
        if (first.taskId() == info.taskId()) {
            tasks.remove(Integer.valueOf(info.index()));
        } else if (info.speculative() && info.successful() && !first.host().equals(info.host())) {
            this.nodes.block(first, ended.stageId());
        }
    }

    public void onStageCompleted(SparkListenerStageCompleted completed) {
        this.stages.remove(completed.stageInfo().stageId() + "." + completed.stageInfo().attemptNumber());
    }
}

/** Of a SparkContext and a number of milliseconds: the SlowNodes that its scheduler asks from now on. */
public final class Install implements BiFunction {
    public Object apply(Object context, Object millis) {
        SparkContext spark = (SparkContext) context;
        TaskSchedulerImpl scheduler = (TaskSchedulerImpl) spark.taskScheduler();
        SlowNodes nodes = new SlowNodes(spark, scheduler, ((Number) millis).longValue(), new SystemClock());
        try {
            Field asked = TaskSchedulerImpl.class.getDeclaredField("healthTrackerOpt");
            asked.setAccessible(true);
            synchronized (scheduler) {
                asked.set(scheduler, new scala.Some(nodes));
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        spark.addSparkListener(new Watch(nodes));
        return nodes;
    }
}
