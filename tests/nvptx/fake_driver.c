/* A CUDA driver library without a GPU, for tests of what happens around kernels.
 *
 * Memory is host memory, copies are memcpy, and every kernel computes, for double columns,
 *     output[j][i] = j + sum over k of (k + 1) * input[k][i]
 *
 * Machine code that begins with HOSTED is the path of a library for the host instead, whose functions
 * host_NAME(shape, order, arguments) run its kernels.
 * Environment variables choose what goes wrong; see the table of the test module. A call that
 * needs a current context without one returns CUDA_ERROR_INVALID_CONTEXT, so that a missing
 * "make current" is noticed; memory and streams belong to the context that made them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201, UNSUPPORTED_PTX = 222, INVALID_HANDLE = 400, NOT_FOUND = 500,
    NOT_READY = 600
};

#define MAX_DEVICES 8
#define STREAM_BASE 0x1000 /* handles from here on are streams: base + 16 * device */
#define STREAM_MADE 0x100000 /* those that were created: made + 0x10000 * device + 16 * number */

typedef struct { int device; } Context;
typedef struct { unsigned grid[3], block[3], shared; void *stream; void *attributes; unsigned count; } LaunchConfig;

static Context contexts[MAX_DEVICES] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static __thread Context *stack[64];
static __thread int depth;
static int started, broken, parameters;
static int64_t allocated;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

static void record(const char *format, ...)
{
    const char *path = getenv("FAKE_CUDA_LOG");
    if (!path) return;
    char line[256];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    __builtin_va_end(arguments);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || write(file, line, size) != size) abort();
    close(file);
}

static void pause_here(void)
{
    long ms = setting("FAKE_CUDA_SLEEP_MS", 0);
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    if (ms) nanosleep(&time, NULL);
}

/* Launches stay here until as many threads have come as are to meet, or for half a minute. */
static void meet_others(void)
{
    static int inside;
    long wanted = setting("FAKE_CUDA_MEET", 0);
    struct timespec millisecond = {0, 1000000};
    if (!wanted) return;
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    for (int k = 0; k < 30000 && __atomic_load_n(&inside, __ATOMIC_SEQ_CST) < wanted; k++)
        nanosleep(&millisecond, NULL);
    record(__atomic_load_n(&inside, __ATOMIC_SEQ_CST) < wanted ? "missed\n" : "met\n");
}

/* After a kernel has failed, a real context answers everything with the same error. */
#define LIVE(condition, code) do { if (broken) return broken; if (!(condition)) return code; } while (0)
#define CURRENT (depth > 0 && stack[depth - 1] != NULL)

static int device_count(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible) return setting("FAKE_CUDA_COUNT", 1);
    int count = *visible != 0;
    for (; *visible; visible++) count += *visible == ',';
    return count;
}

static int visible_count;

static CUresult cuInit(unsigned flags)
{
    record("cuInit\n");
    CUresult code = setting("FAKE_CUDA_INIT", SUCCESS);
    if (code == SUCCESS && !started) { started = 1; visible_count = device_count(); }
    return code;
}

static CUresult cuDriverGetVersion(int *version)
{
    record("cuDriverGetVersion\n");
    *version = setting("FAKE_CUDA_VERSION", 13000);
    return setting("FAKE_CUDA_VERSION_CODE", SUCCESS);
}

static const struct { int code; const char *name; } errors[] = {
    {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {3, "CUDA_ERROR_NOT_INITIALIZED"}, {34, "CUDA_ERROR_STUB_LIBRARY"}, {100, "CUDA_ERROR_NO_DEVICE"},
    {101, "CUDA_ERROR_INVALID_DEVICE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {218, "CUDA_ERROR_INVALID_PTX"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
    {500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    {999, "CUDA_ERROR_UNKNOWN"},
};

static CUresult cuGetErrorName(CUresult code, const char **text)
{
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) { *text = errors[i].name; return SUCCESS; }
    return INVALID_VALUE;
}

static CUresult cuGetErrorString(CUresult code, const char **text) { return cuGetErrorName(code, text); }

/* Devices */

static CUresult cuDeviceGetCount(int *count)
{
    record("cuDeviceGetCount\n");
    *count = visible_count;
    return started ? SUCCESS : NOT_INITIALIZED;
}

static CUresult cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal < visible_count ? SUCCESS : INVALID_DEVICE;
}

static CUresult cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, size, "Fake GPU %d", device);
    return SUCCESS;
}

static CUresult cuDeviceTotalMem(size_t *bytes, int device)
{
    *bytes = setting("FAKE_CUDA_MEMORY", 1 << 30);
    return SUCCESS;
}

static CUresult cuDeviceGetUuid(char *uuid, int device)
{
    memset(uuid, device, 16);
    return SUCCESS;
}

static int capability(int device)
{
    const char *text = getenv("FAKE_CUDA_CAPABILITY");
    if (!text) return 90;
    for (; device > 0 && strchr(text, ','); device--) text = strchr(text, ',') + 1;
    return atoi(text);
}

static CUresult cuDeviceGetAttribute(int *value, int attribute, int device)
{
    switch (attribute) {
    case 16: *value = 4; break;                                  /* multiprocessors */
    case 75: *value = capability(device) / 10; break;
    case 76: *value = capability(device) % 10; break;
    case 97: *value = 227 << 10; break;                          /* shared memory of a block */
    case 115: *value = setting("FAKE_CUDA_POOLS", 1); break;
    default: *value = 1;
    }
    return device < visible_count ? SUCCESS : INVALID_DEVICE;
}

/* Contexts and streams */

static CUresult cuDevicePrimaryCtxRetain(void **context, int device)
{
    record("cuDevicePrimaryCtxRetain %d\n", device);
    *context = &contexts[device];
    return setting("FAKE_CUDA_CONTEXT", SUCCESS);
}

static CUresult cuDevicePrimaryCtxRelease(int device) { return broken; }

static CUresult cuCtxGetCurrent(void **context)
{
    *context = depth ? stack[depth - 1] : NULL;
    return SUCCESS;
}

static CUresult cuCtxSetCurrent(void *context)
{
    if (depth) depth--;
    if (context) stack[depth++] = context;
    return SUCCESS;
}

static CUresult cuCtxPushCurrent(void *context)
{
    if (depth == 64 || !context) return INVALID_CONTEXT;
    stack[depth++] = context;
    return SUCCESS;
}

static CUresult cuCtxPopCurrent(void **context)
{
    if (!depth) return INVALID_CONTEXT;
    *context = stack[--depth];
    return SUCCESS;
}

static CUresult cuCtxGetDevice(int *device)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    *device = stack[depth - 1]->device;
    return SUCCESS;
}

static CUresult cuStreamGetCtx(void *stream, void **context)
{
    LIVE(started, NOT_INITIALIZED);
    uintptr_t handle = (uintptr_t)stream;
    if (handle < STREAM_BASE) { *context = stack[depth - 1]; return SUCCESS; }
    unsigned device = handle < STREAM_MADE ? (handle - STREAM_BASE) / 16 : (handle - STREAM_MADE) / 0x10000;
    if (device >= MAX_DEVICES) return INVALID_HANDLE;
    *context = &contexts[device];
    return SUCCESS;
}

static CUresult cuStreamSynchronize(void *stream)
{
    record("cuStreamSynchronize %p\n", stream);
    LIVE(CURRENT, INVALID_CONTEXT);
    pause_here();
    return SUCCESS;
}

static CUresult cuStreamIsCapturing(void *stream, int *status)
{
    *status = setting("FAKE_CUDA_CAPTURING", 0);
    return SUCCESS;
}

static CUresult cuStreamCreate(void **stream, unsigned flags)
{
    static int made;
    LIVE(CURRENT, INVALID_CONTEXT);
    int number = __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST) % 0x1000;
    *stream = (void *)(uintptr_t)(STREAM_MADE + 0x10000 * stack[depth - 1]->device + 16 * number);
    record("cuStreamCreate %p\n", *stream);
    return setting("FAKE_CUDA_STREAM", SUCCESS);
}

static CUresult cuStreamDestroy(void *stream) { record("cuStreamDestroy %p\n", stream); return broken; }

static CUresult cuEventCreate(void **event, unsigned flags)
{
    static int made;
    LIVE(CURRENT, INVALID_CONTEXT);
    *event = (void *)(uintptr_t)(16 + 16 * __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST));
    record("cuEventCreate %p\n", *event);
    return setting("FAKE_CUDA_EVENT", SUCCESS);
}

static CUresult cuEventDestroy(void *event) { record("cuEventDestroy %p\n", event); return broken; }

static CUresult cuEventRecord(void *event, void *stream)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    record("cuEventRecord %p %p\n", event, stream);
    return setting("FAKE_CUDA_RECORD", SUCCESS);
}

static CUresult cuEventQuery(void *event)
{
    LIVE(started, NOT_INITIALIZED);
    return setting("FAKE_CUDA_PENDING", 0) ? NOT_READY : SUCCESS;
}

static CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    LIVE(started, NOT_INITIALIZED);
    record("cuStreamWaitEvent %p %p\n", stream, event);
    return SUCCESS;
}

static CUresult cuEventSynchronize(void *event)
{
    LIVE(started, NOT_INITIALIZED);
    record("cuEventSynchronize %p\n", event);
    pause_here();
    return SUCCESS;
}

/* Memory */

static struct { uintptr_t start; size_t size; } locked[1024];
static pthread_mutex_t locking = PTHREAD_MUTEX_INITIALIZER;

/* Register a range as page-locked, or where size is 0 forget the one that starts there. */
static CUresult lock_pages(uintptr_t start, size_t size)
{
    CUresult code = INVALID_VALUE;
    pthread_mutex_lock(&locking);
    for (unsigned i = 0; code && i < sizeof locked / sizeof *locked; i++)
        if (locked[i].start == (size ? 0 : start)) {
            locked[i].start = size ? start : 0;
            locked[i].size = size;
            code = SUCCESS;
        }
    pthread_mutex_unlock(&locking);
    return code;
}

static CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    CUresult code = setting("FAKE_CUDA_LOCK", SUCCESS);
    if (code) return code;
    *pointer = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
    if (!*pointer) return OUT_OF_MEMORY;
    memset(*pointer, 0xff, size);
    record("lock %zu %u\n", size, flags);
    return lock_pages((uintptr_t)*pointer, size);
}

static CUresult cuMemFreeHost(void *pointer)
{
    record("unlock\n");
    CUresult code = lock_pages((uintptr_t)pointer, 0);
    if (code == SUCCESS) free(pointer);
    return code;
}

static CUresult cuMemHostRegister(void *pointer, size_t size, unsigned flags)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    return lock_pages((uintptr_t)pointer, size);
}

static CUresult cuMemHostUnregister(void *pointer) { return lock_pages((uintptr_t)pointer, 0); }

static CUresult cuPointerGetAttribute(void *data, int attribute, uintptr_t pointer)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    if (attribute == 9) { /* device ordinal */
        *(int *)data = setting("FAKE_CUDA_OWNER", 0);
        return *(int *)data < 0 ? INVALID_VALUE : SUCCESS;
    }
    return INVALID_VALUE;
}

/* Asked by us of host memory (4: the host's pointer, 11 and 12: its range), and by cuda.core of
   memory that it describes: device memory of device 0. */
static CUresult cuPointerGetAttributes(unsigned count, const int *attributes, void **data, uintptr_t pointer)
{
    uintptr_t start = 0;
    size_t size = 0;
    pthread_mutex_lock(&locking);
    for (unsigned i = 0; i < sizeof locked / sizeof *locked; i++)
        if (locked[i].size && pointer - locked[i].start < locked[i].size) {
            start = locked[i].start;
            size = locked[i].size;
        }
    pthread_mutex_unlock(&locking);
    for (unsigned i = 0; i < count; i++)
        switch (attributes[i]) {
        case 4: *(uintptr_t *)data[i] = size ? pointer : 0; break;
        case 11: *(uintptr_t *)data[i] = start; break;
        case 12: *(size_t *)data[i] = size; break;
        default: *(int *)data[i] = attributes[i] == 2 ? 2 : 0;
        }
    return SUCCESS;
}

static CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    *total = setting("FAKE_CUDA_MEMORY", 1 << 30);
    *free_bytes = *total - allocated;
    return SUCCESS;
}

static CUresult allocate(uintptr_t *pointer, size_t size)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    CUresult code = setting("FAKE_CUDA_ALLOC", SUCCESS);
    if (code) return code;
    if (allocated + (int64_t)size > setting("FAKE_CUDA_MEMORY", 1 << 30)) return OUT_OF_MEMORY;
    size_t *block = malloc(size + 256);
    if (!block) return OUT_OF_MEMORY;
    *block = size;
    __atomic_add_fetch(&allocated, size, __ATOMIC_SEQ_CST);
    *pointer = (uintptr_t)block + 256;
    memset((void *)*pointer, 0xff, size); /* nan until something is written */
    record("allocate %zu\n", size);
    return SUCCESS;
}

static CUresult release(uintptr_t pointer)
{
    size_t *block = (size_t *)(pointer - 256);
    __atomic_sub_fetch(&allocated, *block, __ATOMIC_SEQ_CST);
    record("release %zu\n", *block);
    free(block);
    return broken;
}

static CUresult cuMemAlloc(uintptr_t *pointer, size_t size) { return allocate(pointer, size); }
static CUresult cuMemFree(uintptr_t pointer) { return release(pointer); }
static CUresult cuMemFreeAsync(uintptr_t pointer, void *stream) { return release(pointer); }

static CUresult cuMemAllocFromPoolAsync(uintptr_t *pointer, size_t size, void *pool, void *stream)
{
    return allocate(pointer, size);
}

static CUresult cuMemPoolCreate(void **pool, void *properties)
{
    *pool = (void *)0x77;
    return SUCCESS;
}

static CUresult cuMemPoolDestroy(void *pool) { return broken; }

static CUresult cuMemPoolSetAccess(void *pool, const void *access, size_t count) { return SUCCESS; }

static CUresult cuMemPoolSetAttribute(void *pool, int attribute, uint64_t *value)
{
    record("cuMemPoolSetAttribute %d %llu\n", attribute, (unsigned long long)*value);
    return SUCCESS;
}

static CUresult cuMemPoolGetAttribute(void *pool, int attribute, uint64_t *value)
{
    *value = 0;
    return SUCCESS;
}

static CUresult copy(const char *name, void *to, const void *from, size_t size, void *stream)
{
    record("%s %zu %p\n", name, size, stream);
    LIVE(CURRENT, INVALID_CONTEXT);
    CUresult code = setting("FAKE_CUDA_COPY", SUCCESS);
    if (code) return code;
    pause_here();
    memcpy(to, from, size);
    return SUCCESS;
}

static CUresult cuMemcpyHtoDAsync(uintptr_t to, const void *from, size_t size, void *stream)
{
    return copy("upload", (void *)to, from, size, stream);
}

static CUresult cuMemcpyDtoHAsync(void *to, uintptr_t from, size_t size, void *stream)
{
    CUresult code = setting("FAKE_CUDA_DOWNLOAD", SUCCESS);
    if (code) return code;
    return copy("download", to, (void *)from, size, stream);
}

static CUresult cuMemcpyDtoDAsync(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    return copy("spread", (void *)to, (void *)from, size, stream);
}

static CUresult cuMemsetD8Async(uintptr_t to, unsigned char value, size_t size, void *stream)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    return SUCCESS; /* what was allocated stays nan, so that reading it too early shows */
}

static CUresult cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, void *stream)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    for (size_t i = 0; i < count; i++) ((unsigned *)to)[i] = value;
    return SUCCESS;
}

/* Code */

#define HOSTED "\x7f" "hosted "
typedef void (*Hosted)(const unsigned *shape, int order, void **arguments);

#define CUBIN "\x7f" "cubin " /* machine code is the PTX behind these bytes */

/* Whether the driver takes PTX; machine code has been taken before. */
static CUresult check(const char *code)
{
    const char *version = strstr(code, ".version ");
    const char *target = strstr(code, ".target ");
    if (!version || !target) return INVALID_VALUE;
    int major = 0, minor = 0;
    char name[16] = "";
    sscanf(version, ".version %d.%d", &major, &minor);
    sscanf(target, ".target %15[a-z0-9_]", name);
    int compiled = !strncmp(code, CUBIN, sizeof CUBIN - 1);
    record("%s %s %d.%d\n", compiled ? "load" : "compile", name, major, minor);
    if (compiled) return SUCCESS;
    if (major * 10 + minor > setting("FAKE_CUDA_NEWEST_PTX", 1000)) return UNSUPPORTED_PTX;
    return setting("FAKE_CUDA_LOAD_ANY", SUCCESS);
}

static int to_compile; /* whether PTX was loaded, which is compiled when the kernel is asked for */

static CUresult load(const char *code)
{
    CUresult result = check(code);
    to_compile = strncmp(code, CUBIN, sizeof CUBIN - 1);
    if (result || strstr(code, "alkahest_nothing")) return result;
    parameters = 0;
    for (const char *p = code; (p = strstr(p, "alkahest_eval_param_")); p++)
        if (atoi(p + 20) >= parameters) parameters = atoi(p + 20) + 1;
    return setting("FAKE_CUDA_LOAD", SUCCESS);
}

static CUresult cuLibraryLoadData(void **library, const void *code, void *o, void *ov, unsigned no,
                                  void *l, void *lv, unsigned nl)
{
    if (!strncmp(code, HOSTED, sizeof HOSTED - 1)) {
        record("load hosted\n");
        *library = dlopen((const char *)code + sizeof HOSTED - 1, RTLD_NOW | RTLD_LOCAL);
        return *library ? SUCCESS : INVALID_VALUE;
    }
    *library = (void *)0x55;
    return load(code);
}

static CUresult cuLibraryUnload(void *library) { record("cuLibraryUnload\n"); return broken; }

static CUresult cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    if (library != (void *)0x55) {
        char hosted[128];
        snprintf(hosted, sizeof hosted, "host_%s", name);
        *kernel = dlsym(library, hosted);
        return *kernel ? SUCCESS : NOT_FOUND;
    }
    *kernel = (void *)0x66;
    return strcmp(name, "alkahest_eval") ? NOT_FOUND : SUCCESS;
}

static CUresult cuKernelGetFunction(void **function, void *kernel)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    *function = kernel;
    return to_compile ? setting("FAKE_CUDA_COMPILE", SUCCESS) : SUCCESS;
}

static CUresult cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
    *value = 32;
    return SUCCESS;
}

static CUresult cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    record("attribute %d %d\n", attribute, value);
    return SUCCESS;
}

/* The compiler: one input, and machine code that is as long as the PTX and a little more. */

typedef struct { char *log; } Linking;

static CUresult cuLinkCreate(unsigned n, const int *options, void **values, Linking **state)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    *state = calloc(1, sizeof **state);
    for (unsigned i = 0; i < n; i++)
        if (options[i] == 5) (*state)->log = values[i]; /* CU_JIT_ERROR_LOG_BUFFER */
    return SUCCESS;
}

static char *made; /* what the last linking made */

static CUresult cuLinkAddData(Linking *state, int kind, const char *code, size_t size, const char *name,
                              unsigned n, const int *options, void **values)
{
    if (kind != 1 /* CU_JIT_INPUT_PTX */) return INVALID_VALUE;
    free(made);
    made = malloc(sizeof CUBIN + size);
    sprintf(made, CUBIN "%.*s", (int)size, code);
    CUresult result = check(made + sizeof CUBIN - 1);
    if (result == SUCCESS) result = setting("FAKE_CUDA_COMPILE", SUCCESS);
    const char *log = getenv("FAKE_CUDA_JIT_LOG");
    if (result && log && state->log) strcpy(state->log, log);
    return result;
}

static CUresult cuLinkComplete(Linking *state, void **code, size_t *size)
{
    *code = made;
    *size = strlen(made);
    return SUCCESS;
}

static CUresult cuLinkDestroy(Linking *state) { free(state); return broken; }

static CUresult launch(unsigned grid, unsigned block, void *stream, void **arguments)
{
    LIVE(CURRENT, INVALID_CONTEXT);
    CUresult code = setting("FAKE_CUDA_LAUNCH", SUCCESS);
    if (code) { broken = code == 719 ? code : 0; return code; }
    pause_here();
    meet_others();
    int outputs = setting("FAKE_CUDA_OUTPUTS", 1), inputs = parameters - 1 - outputs;
    double **columns[600];
    uint64_t n = *(uint64_t *)arguments[parameters - 1];
    if (parameters == 2 && getenv("FAKE_CUDA_TABLE")) {
        inputs = setting("FAKE_CUDA_TABLE", 0);
        for (int k = 0; k < inputs + outputs; k++) columns[k] = *(double ***)arguments[0] + k;
    } else {
        for (int k = 0; k < inputs + outputs; k++) columns[k] = arguments[k];
    }
    record("launch %u %u %llu %p\n", grid, block, (unsigned long long)n, stream);
    if (getenv("FAKE_CUDA_IDLE")) return SUCCESS;
    for (int j = 0; j < outputs; j++)
        for (uint64_t i = 0; i < n; i++) {
            double sum = j;
            for (int k = 0; k < inputs; k++) sum += (k + 1) * (*columns[k])[i];
            (*columns[inputs + j])[i] = sum;
        }
    broken = setting("FAKE_CUDA_FAILS", SUCCESS); /* found out at the next synchronisation */
    return SUCCESS;
}

static CUresult launch_hosted(void *kernel, const unsigned *grid, const unsigned *block, unsigned shared,
                              void **arguments)
{
    static int number;
    LIVE(CURRENT, INVALID_CONTEXT);
    if (shared > 227 << 10) return INVALID_VALUE;
    record("launch hosted %u %u %u\n", grid[0], block[0], shared);
    if (++number == setting("FAKE_CUDA_LOSES", 0)) { broken = 719; return SUCCESS; }
    unsigned shape[] = {grid[0], grid[1], grid[2], block[0], block[1]};
    ((Hosted)kernel)(shape, 0, arguments);
    return SUCCESS;
}

static CUresult cuLaunchKernelEx(const LaunchConfig *config, void *kernel, void **arguments, void **extra)
{
    if (kernel != (void *)0x66)
        return launch_hosted(kernel, config->grid, config->block, config->shared, arguments);
    return launch(config->grid[0], config->block[0], config->stream, arguments);
}

static CUresult cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    if (kernel != (void *)0x66) return launch_hosted(kernel, grid, block, shared, arguments);
    return launch(gx, bx, stream, arguments);
}

CUresult cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status);

static const struct { const char *name; void *address; } functions[] = {
    {"cuGetProcAddress", cuGetProcAddress_v2},
#define F(name) {#name, name}
    F(cuInit), F(cuDriverGetVersion), F(cuGetErrorName), F(cuGetErrorString), F(cuDeviceGetCount),
    F(cuDeviceGet), F(cuDeviceGetName), F(cuDeviceTotalMem), F(cuDeviceGetUuid),
    F(cuDeviceGetAttribute), F(cuDevicePrimaryCtxRetain), F(cuDevicePrimaryCtxRelease),
    F(cuCtxGetCurrent), F(cuCtxSetCurrent), F(cuCtxPushCurrent), F(cuCtxPopCurrent),
    F(cuCtxGetDevice), F(cuStreamGetCtx), F(cuStreamSynchronize), F(cuStreamIsCapturing),
    F(cuStreamCreate), F(cuStreamDestroy), F(cuEventCreate), F(cuEventDestroy), F(cuEventRecord),
    F(cuEventSynchronize), F(cuMemHostAlloc), F(cuMemFreeHost), F(cuMemHostRegister),
    F(cuMemHostUnregister), F(cuPointerGetAttribute), F(cuMemGetInfo), F(cuMemAlloc), F(cuMemFree), F(cuMemFreeAsync), F(cuMemAllocFromPoolAsync),
    F(cuMemPoolCreate), F(cuMemPoolSetAccess), F(cuMemPoolDestroy), F(cuMemPoolSetAttribute), F(cuMemPoolGetAttribute),
    F(cuMemcpyHtoDAsync), F(cuMemcpyDtoHAsync), F(cuMemcpyDtoDAsync), F(cuMemsetD8Async), F(cuMemsetD32Async), F(cuKernelSetAttribute), F(cuLibraryLoadData),
    F(cuLibraryUnload), F(cuLibraryGetKernel), F(cuKernelGetFunction), F(cuKernelGetAttribute), F(cuLinkCreate), F(cuLinkAddData),
    F(cuLinkComplete), F(cuLinkDestroy), F(cuLaunchKernelEx), F(cuLaunchKernel), F(cuEventQuery),
    F(cuStreamWaitEvent), F(cuPointerGetAttributes),
#undef F
};

CUresult cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
    const char *missing = getenv("FAKE_CUDA_MISSING");
    *address = NULL;
    if (status) *status = 1; /* not found */
    if (missing && strstr(missing, name)) return NOT_FOUND;
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) { *address = functions[i].address; if (status) *status = 0; return SUCCESS; }
    return NOT_FOUND;
}
