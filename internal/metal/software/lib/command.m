// The queue of the software device: command buffers are lists of work, done in their
// order by its thread, after commit has returned.
#import "software.h"

#include <Block.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#import <Foundation/NSThread.h>

// work is a dispatch where pipeline is set, otherwise a copy from table[1] to table[0].
typedef struct work {
	SWPipeline *pipeline;
	sw_argument table[sw_table];
	id held[sw_table + 1]; // the objects that it uses
	char bytes[sw_table][128]; // that were given, by their index
	unsigned groups[3], threads[3];
	char *grid;
	struct work *next;
} work;

@interface SWQueue : NSObject <MTLCommandQueue> { // not counted, as the device
@public
	int removed; // the code that every command buffer of a removed device ends with
	id<MTLResidencySet> residency;
}
@end

@class SWEncoder;
@interface SWCommandBuffer : SWObject <MTLCommandBuffer> {
@public
	NSString *label;
	work *first, **last;
	SWEncoder *open; // the encoder that has not ended; it keeps the buffer
	MTLCommandBufferHandler handlers[4];
	int handler_count, committed;
	MTLCommandBufferStatus status;
	NSError *error;
	SWQueue *queue;
	SWCommandBuffer *next;
}
@end

@interface SWEncoder : SWObject <MTLComputeCommandEncoder, MTLBlitCommandEncoder> {
@public
	SWCommandBuffer *buffer;
	int blit, ended;
	work now; // the state that the next dispatch has
}
@end

static void hold(work *w, int i, id object) {
	[object retain];
	[w->held[i] release];
	w->held[i] = object;
}

static NSUInteger length_of(id<MTLBuffer> b) { return ((SWBuffer *)b)->bytes; }

static long encoded;
// sw_encoded returns the number of encoder calls, without their ends.
long sw_encoded(void) { return __atomic_load_n(&encoded, __ATOMIC_SEQ_CST); }

@implementation SWEncoder
- (BOOL)usable:(int)forBlit {
	__atomic_add_fetch(&encoded, 1, __ATOMIC_SEQ_CST);
	if (!ended && forBlit == blit) return YES;
	sw_violation(ended ? "an encoder is used after it has ended" : "a command of another kind of encoder");
	return NO;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
	if (![self usable:0]) return;
	now.pipeline = (SWPipeline *)state;
	hold(&now, sw_table, state);
}
- (void)setBuffer:(id<MTLBuffer>)b offset:(NSUInteger)offset atIndex:(NSUInteger)i {
	if (![self usable:0]) return;
	if (buffer->queue->residency && !sw_resident(buffer->queue->residency, ((SWBuffer *)b)->heap)) sw_violation("buffer %lu is of a heap that is not resident", (unsigned long)i);
	if (i >= sw_table || offset >= length_of(b) || offset % 4) return sw_violation("buffer %lu at offset %lu of %lu", (unsigned long)i, (unsigned long)offset, (unsigned long)length_of(b));
	now.table[i] = (sw_argument){(char *)[b contents] + offset, length_of(b) - offset};
	hold(&now, i, b);
}
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)i {
	if (![self usable:0]) return;
	if (i >= sw_table || length == 0 || length > sizeof now.bytes[0]) return sw_violation("%lu bytes at %lu", (unsigned long)length, (unsigned long)i);
	memcpy(now.bytes[i], bytes, length);
	now.table[i] = (sw_argument){NULL, length}; // its place is that of the dispatch's copy
}
- (void)add:(MTLSize)groups threads:(MTLSize)threads grid:(char *)grid {
	if (![self usable:0]) return;
	if (!now.pipeline) return sw_violation("a dispatch without a pipeline");
	NSUInteger n = threads.width * threads.height * threads.depth;
	if (n == 0 || n > [now.pipeline maxTotalThreadsPerThreadgroup]) return sw_violation("%lu threads in a threadgroup", (unsigned long)n);
	if (!grid && groups.width * groups.height * groups.depth == 0) return sw_violation("a dispatch of no threadgroups");
	for (NSUInteger i = 0; i < now.pipeline->buffers; i++)
		if (!now.table[i].bytes) return sw_violation("%s is dispatched without its buffer %lu", [now.pipeline->name UTF8String], (unsigned long)i);
	work *w = malloc(sizeof *w);
	*w = now;
	w->grid = grid;
	w->groups[0] = groups.width, w->groups[1] = groups.height, w->groups[2] = groups.depth;
	w->threads[0] = threads.width, w->threads[1] = threads.height, w->threads[2] = threads.depth;
	for (int i = 0; i <= sw_table; i++) [w->held[i] retain];
	for (int i = 0; i < sw_table; i++)
		if (w->table[i].bytes && !w->table[i].base) w->table[i].base = w->bytes[i];
	w->next = NULL;
	*buffer->last = w;
	buffer->last = &w->next;
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads { [self add:groups threads:threads grid:NULL]; }
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)b indirectBufferOffset:(NSUInteger)offset threadsPerThreadgroup:(MTLSize)threads {
	if (offset % 4 || offset + 12 > length_of(b)) return sw_violation("an indirect dispatch at %lu of %lu", (unsigned long)offset, (unsigned long)length_of(b));
	[self add:MTLSizeMake(0, 0, 0) threads:threads grid:(char *)[b contents] + offset];
}
- (void)copyFromBuffer:(id<MTLBuffer>)from sourceOffset:(NSUInteger)fromOffset toBuffer:(id<MTLBuffer>)to destinationOffset:(NSUInteger)toOffset size:(NSUInteger)size {
	if (![self usable:1]) return;
	if (size == 0 || (size | fromOffset | toOffset) % 4 || fromOffset + size > length_of(from) || toOffset + size > length_of(to))
		return sw_violation("a copy of %lu bytes", (unsigned long)size);
	work *w = calloc(1, sizeof *w);
	w->table[0] = (sw_argument){(char *)[to contents] + toOffset, size};
	w->table[1] = (sw_argument){(char *)[from contents] + fromOffset, size};
	hold(w, 0, to);
	hold(w, 1, from);
	*buffer->last = w;
	buffer->last = &w->next;
}
- (void)endEncoding {
	if (ended) return sw_violation("an encoder ends twice");
	ended = 1;
	buffer->open = nil;
}
- (void)dealloc {
	if (!ended) sw_violation("an encoder goes before it has ended");
	for (int i = 0; i <= sw_table; i++) [now.held[i] release];
	[buffer release];
	[super dealloc];
}
@end

// perform executes one piece of work; it returns 1 and an error text on failure.
static int perform(work *w, char *text, size_t n) {
	if (!w->pipeline) {
		sw_note("copy %zu", w->table[0].bytes);
		memcpy(w->table[0].base, w->table[1].base, w->table[0].bytes);
		return 0;
	}
	if (w->grid) memcpy(w->groups, w->grid, sizeof w->groups);
	const char *name = [w->pipeline->name UTF8String];
	sw_note("run %s %u %u %u", name, w->groups[0], w->groups[1], w->groups[2]);
	char what[512];
	if (!w->pipeline->kernel || !sw_run(w->pipeline->kernel, w->pipeline->synchronises, w->table, w->groups, w->threads, what, sizeof what)) return 0;
	snprintf(text, n, "kernel %s: %s", name, what);
	return 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static SWCommandBuffer *committed_first, *committed_last;

static void execute(SWCommandBuffer *c, int code) {
	usleep(atoi(sw_setting("RLX_SOFTWARE_DELAY", "0")));
	char text[768] = "the command buffer failed";
	if (c->queue->removed) code = c->queue->removed;
	if (code == MTLCommandBufferErrorAccessRevoked || code == MTLCommandBufferErrorDeviceRemoved) c->queue->removed = code;
	for (work *w = c->first; w && !code; w = w->next)
		if (perform(w, text, sizeof text)) code = 1;
	if (code) c->error = [sw_error(@"MTLCommandBufferErrorDomain", code, text) retain];
	c->status = code ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
	for (int i = 0; i < c->handler_count; i++) c->handlers[i](c);
}

static void *execute_all(void *unused) {
	GSRegisterCurrentThread();
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!committed_first) pthread_cond_wait(&more, &lock);
		SWCommandBuffer *c = committed_first;
		committed_first = c->next;
		pthread_mutex_unlock(&lock);
		@autoreleasepool {
			execute(c, c->committed - 1);
			[c release];
		}
	}
}

static void enqueue(SWCommandBuffer *c) {
	static pthread_t worker;
	pthread_mutex_lock(&lock);
	if (!worker) pthread_create(&worker, NULL, execute_all, NULL);
	if (committed_first)
		committed_last->next = c;
	else
		committed_first = c;
	committed_last = c;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

@implementation SWCommandBuffer
- (id)init {
	last = &first;
	return [super init];
}
- (void)setLabel:(NSString *)text {
	[label release];
	label = [text copy];
}
- (SWEncoder *)encoder:(int)blit {
	if (open || committed) sw_violation(open ? "two encoders of a command buffer are open" : "an encoder for a command buffer that is committed");
	SWEncoder *e = [[SWEncoder new] autorelease];
	e->buffer = [self retain];
	e->blit = blit;
	return open = e;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder { return [self encoder:0]; }
- (id<MTLBlitCommandEncoder>)blitCommandEncoder { return [self encoder:1]; }
- (void)addCompletedHandler:(MTLCommandBufferHandler)handler {
	if (committed || handler_count == 4) return sw_violation("a handler for a command buffer that is committed");
	handlers[handler_count++] = Block_copy(handler);
}
- (void)commit {
	if (committed) return sw_violation("a command buffer is committed twice");
	sw_note("commit %s", [label UTF8String]);
	committed = 1 + sw_fails("commit");
	if (open) {
		sw_violation("a command buffer is committed before its encoder has ended");
		committed = 2; // it fails
	}
	enqueue([self retain]);
}
- (MTLCommandBufferStatus)status { return status; }
- (NSError *)error { return error; }
- (void)dealloc {
	for (work *w = first, *after; w; w = after) {
		after = w->next;
		for (int i = 0; i <= sw_table; i++) [w->held[i] release];
		free(w);
	}
	for (int i = 0; i < handler_count; i++) Block_release(handlers[i]);
	[label release];
	[error release];
	[queue release];
	[super dealloc];
}
@end

@implementation SWQueue
- (id<MTLCommandBuffer>)commandBuffer {
	SWCommandBuffer *c = [[SWCommandBuffer new] autorelease];
	c->queue = [self retain];
	return c;
}
- (void)addResidencySet:(id<MTLResidencySet>)set { residency = [set retain]; }
@end

id<MTLCommandQueue> sw_queue(void) { return [SWQueue new]; }
