// The device and its memory. References are counted manually: methods that begin with new
// return an object that is released here; the autorelease pool owns the others.
#include "internal_darwin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *rlx_metal_fail(rlx_error *e, int kind, NSError *from, const char *what) {
	const char *text = from ? [[from localizedDescription] UTF8String] : NULL;
	e->kind = kind;
	e->code = from ? [from code] : 0;
	snprintf(e->text, sizeof e->text, "%s%s%s", what, *what && text ? ": " : "", text ? text : "");
	return NULL;
}

// residency_of returns a set whose heaps are resident for all of a queue's command buffers,
// which saves tracking them for each; nil before macOS 15.
static id<rlx_residency_set> residency_of(id<MTLDevice> device, id<MTLCommandQueue> queue) {
	if (![(NSObject *)device respondsToSelector:@selector(newResidencySetWithDescriptor:error:)]) return nil;
	id descriptor = [[[(Class)NSClassFromString(@"MTLResidencySetDescriptor") alloc] init] autorelease];
	id<rlx_residency_set> set = [(id<rlx_residency>)device newResidencySetWithDescriptor:descriptor error:NULL];
	if (set) [(id<rlx_residency>)queue addResidencySet:set];
	return set;
}

static void *open_device(rlx_error *e) {
	@autoreleasepool {
		id<MTLDevice> device = MTLCreateSystemDefaultDevice();
		if (!device) return rlx_metal_fail(e, RLX_UNAVAILABLE, nil, "Metal has no device: this process may have no access to the GPU");
		if (![device supportsFamily:MTLGPUFamilyApple7]) {
			char text[256];
			snprintf(text, sizeof text, "the device is %s; an Apple GPU, M1 or later, is required", [[device name] UTF8String]);
			[device release];
			return rlx_metal_fail(e, RLX_UNAVAILABLE, nil, text);
		}
		rlx_device *d = calloc(1, sizeof *d);
		d->device = device;
		d->queue = [device newCommandQueue];
		d->bfloat = rlx_has_bfloat(device);
		if (d->queue) {
			d->residency = residency_of(device, d->queue);
			return d;
		}
		[device release];
		free(d);
		return rlx_metal_fail(e, RLX_UNAVAILABLE, nil, "Metal returned no command queue");
	}
}

static void device_info(void *device, rlx_info *info) {
	@autoreleasepool {
		id<MTLDevice> d = ((rlx_device *)device)->device;
		MTLSize threads = [d maxThreadsPerThreadgroup];
		snprintf(info->name, sizeof info->name, "%s", [[d name] UTF8String]);
		info->memory = [d recommendedMaxWorkingSetSize];
		info->allocated = [d currentAllocatedSize];
		info->buffer = [d maxBufferLength];
		info->shared = [d maxThreadgroupMemoryLength];
		info->threads[0] = threads.width;
		info->threads[1] = threads.height;
		info->threads[2] = threads.depth;
		info->bfloat = ((rlx_device *)device)->bfloat;
	}
}

// heap_of returns a heap for the buffers. Hazard tracking orders the encoders of a command
// buffer, as for other buffers.
static id<MTLHeap> heap_of(id<MTLDevice> device, const uint64_t *bytes, size_t count) {
	NSUInteger total = 0;
	for (size_t i = 0; i < count; i++) {
		MTLSizeAndAlign need = [device heapBufferSizeAndAlignWithLength:bytes[i] options:MTLResourceStorageModeShared];
		total = (total + need.align - 1) / need.align * need.align + need.size;
	}
	MTLHeapDescriptor *descriptor = [[[MTLHeapDescriptor alloc] init] autorelease];
	[descriptor setSize:total];
	[descriptor setStorageMode:MTLStorageModeShared];
	[descriptor setHazardTrackingMode:MTLHazardTrackingModeTracked];
	return [device newHeapWithDescriptor:descriptor];
}

static void *new_heap(void *device, const uint64_t *bytes, size_t count, void **buffers, rlx_error *e) {
	@autoreleasepool {
		rlx_device *d = device;
		id<MTLHeap> heap = heap_of(d->device, bytes, count);
		if (!heap) return rlx_metal_fail(e, RLX_MEMORY, nil, "");
		for (size_t i = 0; i < count; i++) {
			buffers[i] = [heap newBufferWithLength:bytes[i] options:MTLResourceStorageModeShared];
			if (buffers[i]) continue;
			while (i > 0) [(id<MTLBuffer>)buffers[--i] release];
			[heap release];
			return rlx_metal_fail(e, RLX_MEMORY, nil, "");
		}
		[d->residency addAllocation:heap];
		[d->residency commit];
		[d->residency requestResidency];
		return heap;
	}
}

static void drop_heap(void *device, void *heap, void **buffers, size_t count) {
	@autoreleasepool {
		rlx_device *d = device;
		[d->residency removeAllocation:(id)heap];
		[d->residency commit];
		for (size_t i = 0; i < count; i++) [(id)buffers[i] release];
		[(id)heap release];
	}
}

static void *buffer_contents(void *buffer) {
	return [(id<MTLBuffer>)buffer contents];
}

static void release_object(void *object) {
	@autoreleasepool {
		[(id)object release];
	}
}

const rlx_metal *rlx_metal_binding(void) {
	static const rlx_metal binding = {
		.open = open_device,
		.info = device_info,
		.heap = new_heap,
		.drop = drop_heap,
		.contents = buffer_contents,
		.archive = rlx_archive_open,
		.save = rlx_archive_save,
		.function = rlx_function,
		.pipeline = rlx_pipeline,
		.commit = rlx_commit,
		.forget = rlx_forget,
		.release = release_object,
	};
	return &binding;
}
