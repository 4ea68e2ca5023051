// Runs: a prepared list becomes one command buffer.
#include "internal_darwin.h"

#include <stdlib.h>
#include <string.h>

// encoders are the encoders of a command buffer, one open at a time. Consecutive dispatches
// share one and run in order.
typedef struct {
	id<MTLCommandBuffer> buffer;
	id<MTLComputeCommandEncoder> compute;
	id<MTLBlitCommandEncoder> blit;
	void *pipeline;                // the pipeline set on compute
	rlx_binding bound[RLX_BUFFERS]; // the buffers set, by index
} encoders;

static void end_encoding(encoders *x) {
	[x->compute endEncoding];
	[x->blit endEncoding];
	x->compute = nil;
	x->blit = nil;
	x->pipeline = NULL;
	memset(x->bound, 0, sizeof x->bound);
}

static void encode_copy(encoders *x, const rlx_command *c) {
	if (!x->blit) {
		end_encoding(x);
		x->blit = [x->buffer blitCommandEncoder];
	}
	[x->blit copyFromBuffer:(id<MTLBuffer>)c->bindings[1].buffer
	           sourceOffset:c->bindings[1].offset
	               toBuffer:(id<MTLBuffer>)c->bindings[0].buffer
	      destinationOffset:c->bindings[0].offset
	                   size:c->bytes];
}

static void encode_bytes(encoders *x, const void *bytes, size_t length, uint32_t index) {
	[x->compute setBytes:bytes length:length atIndex:index];
	x->bound[index].buffer = NULL;
}

// encode_bindings binds the buffers and counters of a dispatch. It skips what is bound
// already: neighbouring kernels share most bindings.
static void encode_bindings(encoders *x, const rlx_command *c) {
	for (uint32_t i = 0; i < c->binding_count; i++) {
		const rlx_binding *b = &c->bindings[i];
		if (x->bound[i].buffer == b->buffer && x->bound[i].offset == b->offset) continue;
		[x->compute setBuffer:(id<MTLBuffer>)b->buffer offset:b->offset atIndex:i];
		x->bound[i] = *b;
	}
	if (c->counter_count) encode_bytes(x, c->counters, 4 * c->counter_count, c->binding_count);
	if (!c->piece) return;
	uint32_t at = c->binding_count + (c->counter_count > 0), yes = 1;
	encode_bytes(x, c->first, sizeof c->first, at);
	if (!c->grid.buffer) return encode_bytes(x, &yes, sizeof yes, at + 1);
	[x->compute setBuffer:(id<MTLBuffer>)c->grid.buffer offset:c->grid.offset atIndex:at + 1];
	x->bound[at + 1] = c->grid;
}

static void encode_dispatch(encoders *x, const rlx_command *c) {
	if (!x->compute) {
		end_encoding(x);
		x->compute = [x->buffer computeCommandEncoder];
	}
	id<MTLComputeCommandEncoder> to = x->compute;
	if (x->pipeline != c->pipeline) [to setComputePipelineState:(id<MTLComputePipelineState>)c->pipeline];
	x->pipeline = c->pipeline;
	encode_bindings(x, c);
	MTLSize threads = MTLSizeMake(c->threads[0], c->threads[1], c->threads[2]);
	if (c->grid.buffer && !c->piece)
		[to dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)c->grid.buffer
		                      indirectBufferOffset:c->grid.offset
		                     threadsPerThreadgroup:threads];
	else
		[to dispatchThreadgroups:MTLSizeMake(c->groups[0], c->groups[1], c->groups[2]) threadsPerThreadgroup:threads];
}

// kind_of classifies an error of a command buffer.
static int kind_of(NSError *error) {
	switch ([error code]) {
	case MTLCommandBufferErrorOutOfMemory:
		return RLX_MEMORY;
	case MTLCommandBufferErrorAccessRevoked:
	case MTLCommandBufferErrorDeviceRemoved:
		return RLX_LOST;
	}
	return RLX_FAILED;
}

void rlx_forget(rlx_run *run) {
	if (__atomic_sub_fetch(&run->users, 1, __ATOMIC_ACQ_REL) == 0) free(run);
}

static void completed(rlx_run *run, id<MTLCommandBuffer> buffer) {
	@autoreleasepool {
		uint32_t state = RLX_DONE;
		if ([buffer status] == MTLCommandBufferStatusError) {
			state = RLX_BROKEN;
			rlx_metal_fail(&run->error, kind_of([buffer error]), [buffer error], "");
		}
		__atomic_store_n(&run->state, state, __ATOMIC_RELEASE);
		rlx_forget(run);
	}
}

rlx_run *rlx_commit(void *device, const char *label, const rlx_command *list, size_t count, rlx_error *e) {
	@autoreleasepool {
		encoders x = {.buffer = [((rlx_device *)device)->queue commandBuffer]};
		if (!x.buffer) return rlx_metal_fail(e, RLX_FAILED, nil, "Metal returned no command buffer");
		[x.buffer setLabel:[NSString stringWithUTF8String:label]];
		for (size_t i = 0; i < count; i++) {
			if (list[i].pipeline)
				encode_dispatch(&x, &list[i]);
			else
				encode_copy(&x, &list[i]);
		}
		end_encoding(&x);
		rlx_run *run = calloc(1, sizeof *run);
		run->users = 2;
		[x.buffer addCompletedHandler:^(id<MTLCommandBuffer> buffer) {
			completed(run, buffer);
		}];
		[x.buffer commit];
		return run;
	}
}
