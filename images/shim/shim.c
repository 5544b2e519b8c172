/*
 * shim: the first process of every box.
 *
 * It says what the kernel applied to it, waits on stdin for commands, runs them one after another, passes their output on
 * in frames, kills at the deadline, and at the end kills and counts whatever is still alive. Because it is init of the
 * box's pid namespace, its own exit ends every process of the box; because it is not dumpable, no process of the same user
 * can open its descriptors, so what it reports cannot be forged by what it runs.
 *
 * Frames, both ways: one byte type, four bytes big-endian length, payload.
 *   out  H  facts about this process, "key=value" lines
 *        O  stdout of the command        E  stderr of the command
 *        R  how a command ended, "key=value" lines
 *        F  how the box ended, "key=value" lines; nothing follows
 *        S  the moment of a fault has come, "key=value" lines
 *   in   S  a fault to come: "number mid_tool delay_ms action to_tool memory_mib" and NUL (see `struct fault`)
 *        D  somebody else has brought about the fault that it was told of; nothing in it
 *        J  a command: NUL-terminated fields timeout_ms, last (0|1), argc, envc, cwd, argv..., env...; the rest is its stdin
 *        X  no more commands
 * End of stdin means that the controller is gone: everything is killed at once.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 65536, MAX_JOB = 32 << 20, KILL_WAIT_MS = 5000, CONTROL = 0, REPORT = 1 };

static int out_pipe[2], err_pipe[2]; /* one pair for all commands: a server started by one may serve the next */
static int signals = -1;
static int64_t deadline = -1;
static int timed_out;
static int64_t stalled_ms; /* longest single wait for our report to be taken */
static int schedstat = -1;

struct job {
    char *data;
    uint32_t size;
    long timeout_ms;
    int last;
    char *cwd, **argv, **env;
    const char *input;
    size_t input_left;
};

/* A fault of the suite's schedule; they happen in order, each once. */
struct fault {
    int number;
    int mid_tool;  /* its moment: when a process runs that has another name than the main one */
    long delay_ms; /* otherwise: so long after the fault before, or after the start of the first command */
    int action;    /* a signal, or one of those below */
    int to_tool;
    long memory_mib;
};
/* TELL: somebody else brings it about, wants to know when, and says when it is done. */
enum { TELL = 0, FILL_MEMORY = -1, FILL_DISK = -2, MAX_FAULTS = 16, HOGS = 8, FILLS = 64, LOOK_MS = 5, PIECE = 1 << 20 };

static struct fault faults[MAX_FAULTS];
static int fault_count, next_fault, is_awaited;
static int64_t first_began = -1, last_fault;
static pid_t hogs[HOGS];

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void kill_all(void)
{
    kill(-1, SIGKILL); /* init itself is spared by the kernel */
}

static void die(int code)
{
    kill_all();
    _exit(code);
}

static int wait_left(void)
{
    if (deadline < 0)
        return -1;
    int64_t left = deadline - now_ms();
    return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

/* The same, but no longer than until the next fault can be due. */
static int wait_fault(void)
{
    int left = wait_left();
    if (next_fault >= fault_count || is_awaited)
        return left;
    int64_t due = last_fault + faults[next_fault].delay_ms - now_ms();
    int until = faults[next_fault].mid_tool ? LOOK_MS : due < 0 ? 0 : due > 1000000 ? 1000000 : (int)due;
    return left < 0 || until < left ? until : left;
}

static void check_deadline(void)
{
    if (deadline >= 0 && now_ms() >= deadline) {
        timed_out = 1;
        deadline = -1;
        kill_all();
    }
}

/* For how long we could have run and were not let (proc_pid_schedstat(5)): a command can busy all processors of its box,
 * and must not be able to make that look as if nobody read our report. */
static int64_t kept_waiting_ms(void)
{
    char text[96];
    unsigned long long ran, waited;
    ssize_t n = schedstat < 0 ? -1 : pread(schedstat, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (int64_t)(waited / 1000000) : 0;
}

/* The deadline holds even while nobody reads our report. */
static void put(const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(REPORT, at, size);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = REPORT, .events = POLLOUT};
            int64_t since = now_ms() - kept_waiting_ms();
            poll(&p, 1, wait_left());
            int64_t waited = now_ms() - kept_waiting_ms() - since;
            if (waited > stalled_ms)
                stalled_ms = waited;
            check_deadline();
        } else if (n < 0 && errno != EINTR) {
            die(74);
        }
    }
}

static void frame(char type, const void *data, uint32_t size)
{
    unsigned char head[5] = {(unsigned char)type, size >> 24, size >> 16, size >> 8, size};
    put(head, sizeof head);
    put(data, size);
}

/* 0: end of file; 1: filled. Blocking is fine: the controller sends a frame whole. */
static int fill(void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        ssize_t n = read(CONTROL, at, size);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return 0;
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return 1;
}

static char *field(struct job *job, uint32_t *at)
{
    char *start = job->data + *at;
    char *end = *at < job->size ? memchr(start, 0, job->size - *at) : NULL;
    if (!end)
        die(65);
    *at += (uint32_t)(end - start) + 1;
    return start;
}

static char **fields(struct job *job, uint32_t *at, long count)
{
    if (count < 0 || count > 65536)
        die(65);
    char **list = calloc((size_t)count + 1, sizeof *list);
    if (!list)
        die(71);
    for (long i = 0; i < count; i++)
        list[i] = field(job, at);
    return list;
}

static void read_fault(uint32_t size)
{
    char text[128];
    struct fault *f = &faults[fault_count];
    if (size == 0 || size > sizeof text || fault_count == MAX_FAULTS || !fill(text, size) || text[size - 1] != 0 ||
        sscanf(text, "%d %d %ld %d %d %ld", &f->number, &f->mid_tool, &f->delay_ms, &f->action, &f->to_tool,
               &f->memory_mib) != 6)
        die(65);
    fault_count++;
}

/* Its type; the length of what follows is in `size`. */
static int next_frame(uint32_t *size)
{
    unsigned char head[5];
    if (!fill(head, sizeof head))
        die(74);
    *size = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
    return head[0];
}

/* The fault that somebody else brings about is over, and so the next one is counted from now. */
static void take_word(int type, uint32_t size)
{
    if (type != 'D' || size != 0 || !is_awaited)
        die(65);
    is_awaited = 0;
    last_fault = now_ms();
}

/* 1: a job was read; 0: there are no more. */
static int next_job(struct job *job)
{
    uint32_t size;
    int type = next_frame(&size);
    if (type == 'X')
        return 0;
    if (type == 'S' || type == 'D') {
        type == 'S' ? read_fault(size) : take_word(type, size);
        return next_job(job);
    }
    if (type != 'J' || size > MAX_JOB || !(job->data = malloc((size_t)size + 1)) || !fill(job->data, size))
        die(65);
    job->size = size;
    uint32_t at = 0;
    job->timeout_ms = atol(field(job, &at));
    job->last = atoi(field(job, &at));
    long argc = atol(field(job, &at)), envc = atol(field(job, &at));
    job->cwd = field(job, &at);
    job->argv = fields(job, &at, argc);
    job->env = fields(job, &at, envc);
    job->input = job->data + at;
    job->input_left = size - at;
    return 1;
}

static void free_job(struct job *job)
{
    free(job->argv);
    free(job->env);
    free(job->data);
}

/* In the child. Reports "step:ERRNO" on `trouble` if the command cannot be started. */
static void start(const struct job *job, int in, int trouble)
{
    const char *step = "cwd";
    dup2(in, 0);
    dup2(out_pipe[1], 1);
    dup2(err_pipe[1], 2);
    if (trouble != 3)
        dup2(trouble, 3);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    closefrom(4);
    /* Only now may others of this user look at us: nothing of the shim's is open any more. */
    prctl(PR_SET_DUMPABLE, 1);
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        if (write(score, "500", 3) < 0) { /* the shim should outlive its command; not vital */
        }
        close(score);
    }
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    umask(022);
    environ = job->env;
    if (chdir(job->cwd) == 0) {
        step = "exec";
        execvp(job->argv[0], job->argv);
    }
    dprintf(3, "%s:%s", step, strerrorname_np(errno));
    _exit(127);
}

static void set_flags(int fd, int nonblocking)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (nonblocking)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Passes on at most what the pipe holds now, so that a flood from a leftover process cannot hold us here. */
static void drain(int fd, char type)
{
    static char buffer[CHUNK];
    int held = 0;
    ioctl(fd, FIONREAD, &held);
    while (held > 0) {
        ssize_t n = read(fd, buffer, held < CHUNK ? (size_t)held : CHUNK);
        if (n <= 0)
            return;
        frame(type, buffer, (uint32_t)n);
        held -= (int)n;
    }
}

static int feed(int fd, struct job *job)
{
    ssize_t n = write(fd, job->input, job->input_left);
    if (n > 0) {
        job->input += n;
        job->input_left -= (size_t)n;
    }
    if (job->input_left == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Reaps everything that has ended; returns 1 if `main_pid` was among it. */
static int reap(pid_t main_pid, int *status)
{
    int found = 0, s;
    pid_t pid;
    while ((pid = waitpid(-1, &s, WNOHANG)) > 0) {
        if (pid == main_pid) {
            *status = s;
            found = 1;
        }
        for (int i = 0; i < HOGS; i++)
            if (hogs[i] == pid)
                hogs[i] = 0;
    }
    return found;
}

/* The name of a live process, from /proc; 0 if it is a zombie or gone. */
static int look_at(pid_t pid, char name[64])
{
    char path[64], line[512], *open_paren, *close_paren;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    line[n] = 0;
    open_paren = strchr(line, '(');
    close_paren = strrchr(line, ')');
    if (!open_paren || !close_paren || !close_paren[1] || close_paren[2] == 'Z' || close_paren[2] == 'X')
        return 0;
    *close_paren = 0;
    snprintf(name, 64, "%.63s", open_paren + 1);
    return 1;
}

static int is_hog(pid_t pid)
{
    for (int i = 0; i < HOGS; i++)
        if (hogs[i] == pid)
            return 1;
    return 0;
}

/* The newest process with another name than the main one; 0 if there is none. */
static pid_t find_tool(pid_t main_pid)
{
    char main_name[64] = "", name[64];
    pid_t found = 0;
    if (!look_at(main_pid, main_name))
        return 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid = atoi(entry->d_name);
        if (pid > found && pid != getpid() && !is_hog(pid) && look_at(pid, name) && strcmp(name, main_name) != 0)
            found = pid;
    }
    if (proc)
        closedir(proc);
    return found;
}

/* Several processes of ours take all memory there is, none of them so much that it would be ended before a command.
 * None begins before all are there: afterwards there may be none left to start another with. */
static int fill_memory(long mib)
{
    size_t size = (size_t)mib * 2 * 1024 * 1024 / HOGS;
    int gate[2];
    if (pipe2(gate, O_CLOEXEC))
        return errno;
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = fork();
        if (hogs[i] == 0) {
            char end;
            close(gate[1]);
            while (read(gate[0], &end, 1) < 0)
                ;
            closefrom(0);
            char *held = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (size_t at = 0; held != MAP_FAILED && at < size; at += 4096)
                held[at] = 1;
            for (;;)
                pause();
        }
        if (hogs[i] < 0) {
            int error = errno;
            hogs[i] = 0;
            close(gate[0]);
            close(gate[1]);
            return error;
        }
    }
    close(gate[0]);
    close(gate[1]);
    return 0;
}

static void end_hogs(void)
{
    for (int i = 0; i < HOGS; i++)
        if (hogs[i] > 0 && kill(hogs[i], SIGKILL) == 0)
            waitpid(hogs[i], NULL, 0);
    memset(hogs, 0, sizeof hogs);
}

/* Files without a name take all space of the workspace until the box ends, so there is nothing of them to collect. */
static int fill_disk(void)
{
    int error = 0;
    for (int i = 0; i < FILLS; i++) {
        char path[64];
        snprintf(path, sizeof path, "/workspace/.boxeval-full-%d", i);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            return errno == ENOSPC ? 0 : errno;
        unlink(path);
        off_t at = 0;
        for (off_t piece = PIECE; piece >= 4096;) {
            error = fallocate(fd, 0, at, piece) ? errno : 0;
            if (error == 0)
                at += piece;
            else if (error == ENOSPC)
                piece /= 2;
            else if (error != EINTR)
                break;
        }
        if (error != EFBIG)
            return error == ENOSPC ? 0 : error;
    }
    return error;
}

/* Brings about what is due. */
static void check_faults(pid_t main_pid)
{
    while (next_fault < fault_count && !is_awaited) {
        struct fault *f = &faults[next_fault];
        pid_t tool = f->mid_tool || f->to_tool ? find_tool(main_pid) : 0;
        if (f->mid_tool ? tool == 0 : now_ms() < last_fault + f->delay_ms)
            return;
        int error = 0;
        if (f->action > 0)
            error = f->to_tool && tool == 0 ? ESRCH : kill(f->to_tool ? tool : main_pid, f->action) ? errno : 0;
        else if (f->action == FILL_MEMORY)
            error = fill_memory(f->memory_mib);
        else if (f->action == FILL_DISK)
            error = fill_disk();
        char text[128];
        last_fault = now_ms();
        int n = snprintf(text, sizeof text, "number=%d\nat_ms=%lld\nerror=%s\n", f->number,
                         (long long)(last_fault - first_began), error ? strerrorname_np(error) : "");
        next_fault++;
        is_awaited = f->action == TELL;
        frame('S', text, (uint32_t)n);
    }
}

static void forget_signals(void)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        ;
}

static int run_to_end(struct job *job, pid_t pid, int in)
{
    int status = 0;
    for (;;) {
        check_faults(pid);
        struct pollfd p[5] = {{.fd = signals, .events = POLLIN},
                              /* Else hang-up only: the next frame can wait. */
                              {.fd = CONTROL, .events = is_awaited ? POLLIN : 0},
                              {.fd = out_pipe[0], .events = POLLIN},
                              {.fd = err_pipe[0], .events = POLLIN},
                              {.fd = in, .events = POLLOUT}};
        poll(p, 5, wait_fault());
        check_deadline();
        if (p[1].revents & (POLLHUP | POLLERR))
            die(74);
        if (p[1].revents & POLLIN) {
            uint32_t size;
            int type = next_frame(&size);
            take_word(type, size);
        }
        if (p[2].revents)
            drain(out_pipe[0], 'O');
        if (p[3].revents)
            drain(err_pipe[0], 'E');
        if (in >= 0 && p[4].revents)
            in = feed(in, job);
        if (p[0].revents)
            forget_signals();
        if (reap(pid, &status))
            break;
    }
    end_hogs();
    if (in >= 0)
        close(in);
    drain(out_pipe[0], 'O');
    drain(err_pipe[0], 'E');
    return status;
}

/* Live processes besides this one, by /proc; zombies do not count. */
static int alive(void)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        char name[64];
        pid_t pid = atoi(entry->d_name);
        if (pid > 0 && pid != getpid() && look_at(pid, name))
            count++;
    }
    if (proc)
        closedir(proc);
    return count;
}

static int run(struct job *job, int *orphans)
{
    int in[2], trouble[2], status;
    char why[64] = "", text[256];
    if (pipe2(in, O_CLOEXEC) || pipe2(trouble, O_CLOEXEC))
        die(71);
    int64_t began = now_ms();
    if (first_began < 0)
        first_began = last_fault = began;
    timed_out = 0;
    stalled_ms = 0;
    deadline = began + job->timeout_ms;
    pid_t pid = fork();
    if (pid == 0)
        start(job, in[0], trouble[1]);
    close(in[0]);
    close(trouble[1]);
    set_flags(in[1], 1);
    if (pid < 0) {
        snprintf(why, sizeof why, "fork:%s", strerrorname_np(errno));
        close(in[1]);
        status = 0;
    } else {
        if (read(trouble[0], why, sizeof why - 1) < 0)
            why[0] = 0;
        status = run_to_end(job, pid, in[1]);
    }
    close(trouble[0]);
    deadline = -1;
    *orphans = alive();
    int n = snprintf(text, sizeof text,
                     "exit=%d\nsignal=%d\ntimed_out=%d\nspawn_error=%s\nwall_ms=%lld\nstalled_ms=%lld\n",
                     WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0, timed_out,
                     why, (long long)(now_ms() - began), (long long)stalled_ms);
    frame('R', text, (uint32_t)n);
    return timed_out || why[0] || status != 0;
}

static long long counter(const char *path, const char *name)
{
    char line[128];
    long long value, found = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char key[64];
        if (sscanf(line, "%63s %lld", key, &value) == 2 && strcmp(key, name) == 0)
            found = value;
    }
    if (file)
        fclose(file);
    return found;
}

static int full(const char *path)
{
    struct statfs s;
    return statfs(path, &s) == 0 && s.f_blocks > 0 && (s.f_bavail == 0 || (s.f_files > 0 && s.f_ffree == 0));
}

static void finish(int orphans)
{
    int64_t until = now_ms() + KILL_WAIT_MS;
    int status, survivors;
    for (;;) {
        kill_all();
        while (waitpid(-1, &status, WNOHANG) > 0)
            ;
        survivors = alive();
        if (survivors == 0 || now_ms() > until)
            break;
        usleep(1000);
    }
    struct rusage use;
    getrusage(RUSAGE_CHILDREN, &use);
    long long cpu_ms = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000LL +
                       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
    long long oom = counter("/sys/fs/cgroup/memory.events", "oom_kill") +
                    counter("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill");
    long long pids = counter("/sys/fs/cgroup/pids.events", "max") + counter("/sys/fs/cgroup/pids/pids.events", "max");
    char text[512];
    int n = snprintf(text, sizeof text,
                     "orphans=%d\nsurvivors=%d\noom_kills=%lld\npids_denied=%lld\ncpu_ms=%lld\nmax_rss_kib=%ld\n"
                     "full=%s%s%s%s\n",
                     orphans, survivors, oom, pids, cpu_ms, use.ru_maxrss, full("/workspace") ? " /workspace" : "",
                     full("/home/agent") ? " /home/agent" : "", full("/tmp") ? " /tmp" : "",
                     full("/dev/shm") ? " /dev/shm" : "");
    frame('F', text, (uint32_t)n);
    _exit(0);
}

/* The lines of /proc/self/status that show what the kernel applied. Read before we become undumpable. */
static void hello(void)
{
    static const char *const names[] = {"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                                        "NoNewPrivs", "Seccomp"};
    char text[2048], line[512];
    int n = snprintf(text, sizeof text, "pid=%d\n", getpid());
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(line, names[i]) == 0) {
                char *value = colon + 1 + strspn(colon + 1, "\t ");
                value[strcspn(value, "\n")] = 0;
                for (char *c = value; *c; c++)
                    if (*c == '\t')
                        *c = ' ';
                n += snprintf(text + n, sizeof text - (size_t)n, "%s=%s\n", line, value);
            }
    }
    if (file)
        fclose(file);
    frame('H', text, (uint32_t)n);
}

int main(void)
{
    hello();
    if (prctl(PR_SET_DUMPABLE, 0) || pipe2(out_pipe, O_CLOEXEC) || pipe2(err_pipe, O_CLOEXEC))
        return 71;
    set_flags(out_pipe[0], 1);
    set_flags(err_pipe[0], 1);
    schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    fcntl(REPORT, F_SETFL, fcntl(REPORT, F_GETFL) | O_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
    /* No other signal is handled: the kernel keeps what init does not handle away from it, so no command can end it. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if ((signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return 71;
    int orphans = 0, stop = 0;
    while (!stop) {
        struct job job = {0};
        if (!next_job(&job))
            break;
        stop = run(&job, &orphans) || job.last;
        free_job(&job);
    }
    finish(orphans);
}
