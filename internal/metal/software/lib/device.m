// The software device: Metal's protocols over this processor and its memory.
#import "software.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sw_setting(const char *name, const char *otherwise) {
	const char *value = getenv(name);
	return value && *value ? value : otherwise;
}

static void log_line(const char *before, const char *format, va_list list) {
	const char *path = sw_setting("RLX_SOFTWARE_LOG", NULL);
	if (!path) return;
	char line[1024];
	vsnprintf(line, sizeof line, format, list);
	FILE *f = fopen(path, "a");
	if (!f) return;
	fprintf(f, "%s%s\n", before, line); // one write, so that lines of two threads do not mix
	fclose(f);
}

void sw_note(const char *format, ...) {
	va_list list;
	va_start(list, format);
	log_line("", format, list);
	va_end(list);
}

void sw_violation(const char *format, ...) {
	va_list list;
	va_start(list, format);
	log_line("violation: ", format, list);
	va_end(list);
}

int sw_fails(const char *name) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char asked[128]; // the setting that seen belongs to
	static int seen;
	char which[64] = "";
	int code = 0, nth = 1, hit = 0;
	const char *setting = sw_setting("RLX_SOFTWARE_FAIL", "");
	sscanf(setting, "%63s %d %d", which, &code, &nth);
	pthread_mutex_lock(&lock);
	if (strcmp(asked, setting) != 0) seen = 0;
	snprintf(asked, sizeof asked, "%s", setting);
	if (strcmp(which, name) == 0) hit = ++seen == nth;
	pthread_mutex_unlock(&lock);
	return hit ? code : 0;
}

NSError *sw_error(NSString *domain, NSInteger code, const char *text) {
	NSDictionary *info = [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:text] forKey:NSLocalizedDescriptionKey];
	return [NSError errorWithDomain:domain code:code userInfo:info];
}

static long living;
// sw_living returns the number of live objects.
long sw_living(void) { return __atomic_load_n(&living, __ATOMIC_SEQ_CST); }

@implementation SWObject
- (id)init {
	__atomic_add_fetch(&living, 1, __ATOMIC_SEQ_CST);
	return [super init];
}
- (void)dealloc {
	__atomic_sub_fetch(&living, 1, __ATOMIC_SEQ_CST);
	[super dealloc];
}
@end

static long allocated;

@interface SWHeapDescriptor : MTLHeapDescriptor {
@public
	NSUInteger size;
	MTLStorageMode storage;
	MTLHazardTrackingMode hazards;
}
@end
SW_CLUSTER(MTLHeapDescriptor, SWHeapDescriptor)
@implementation SWHeapDescriptor
- (void)setSize:(NSUInteger)n { size = n; }
- (void)setStorageMode:(MTLStorageMode)mode { storage = mode; }
- (void)setHazardTrackingMode:(MTLHazardTrackingMode)mode { hazards = mode; }
@end

@interface SWHeap : SWObject <MTLHeap> {
@public
	NSUInteger size, used;
}
@end
@implementation SWHeap
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
	NSUInteger at = (used + 255) / 256 * 256;
	if (length == 0 || at + length > size) return nil;
	used = at + length;
	SWBuffer *b = [SWBuffer new];
	b->bytes = length;
	b->memory = aligned_alloc(256, (length + 255) / 256 * 256);
	memset(b->memory, 0xa5, length); // full of anything, as new memory is
	b->heap = [self retain];
	return b;
}
- (void)dealloc {
	__atomic_sub_fetch(&allocated, size, __ATOMIC_SEQ_CST);
	[super dealloc];
}
@end

@implementation SWBuffer
- (void *)contents { return memory; }
- (void)dealloc {
	free(memory);
	[heap release];
	[super dealloc];
}
@end

static int family(void) { return atoi(sw_setting("RLX_SOFTWARE_FAMILY", "1007")); }

@interface SWDevice : NSObject <MTLDevice> // which is not counted: it is never given back
@end
@implementation SWDevice
- (NSString *)name { return @"Software Metal"; }
- (BOOL)supportsFamily:(MTLGPUFamily)wanted { return wanted <= family(); }
- (uint64_t)recommendedMaxWorkingSetSize { return strtoull(sw_setting("RLX_SOFTWARE_MEMORY", "4294967296"), NULL, 10); }
- (NSUInteger)currentAllocatedSize { return allocated; }
- (NSUInteger)maxBufferLength { return [self recommendedMaxWorkingSetSize] / 2; }
- (NSUInteger)maxThreadgroupMemoryLength { return 32 << 10; }
- (MTLSize)maxThreadsPerThreadgroup { return MTLSizeMake(1024, 1024, 1024); }
- (id<MTLCommandQueue>)newCommandQueue { return sw_queue(); }
- (BOOL)respondsToSelector:(SEL)selector {
	BOOL old = *sw_setting("RLX_SOFTWARE_RESIDENCY", "1") == '0';
	return !(old && sel_isEqual(selector, @selector(newResidencySetWithDescriptor:error:))) && [super respondsToSelector:selector];
}
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(id)descriptor error:(NSError **)error {
	if (!descriptor) sw_violation("a residency set without a descriptor");
	return sw_residency();
}
- (MTLSizeAndAlign)heapBufferSizeAndAlignWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
	return (MTLSizeAndAlign){(length + 255) / 256 * 256, 256};
}
- (id<MTLHeap>)newHeapWithDescriptor:(MTLHeapDescriptor *)descriptor {
	SWHeapDescriptor *d = (SWHeapDescriptor *)descriptor;
	sw_note("newHeap %lu", (unsigned long)d->size);
	if (d->storage != MTLStorageModeShared || d->hazards != MTLHazardTrackingModeTracked) sw_violation("a heap that is not shared and tracked");
	if (sw_fails("newHeap") || allocated + d->size > [self recommendedMaxWorkingSetSize]) return nil;
	__atomic_add_fetch(&allocated, d->size, __ATOMIC_SEQ_CST);
	SWHeap *h = [SWHeap new];
	h->size = d->size;
	return h;
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(NSError **)error {
	return sw_library(source, options, error);
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(MTLComputePipelineReflection **)reflection
                                                               error:(NSError **)error {
	return sw_pipeline(descriptor, error);
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor error:(NSError **)error {
	return sw_archive(descriptor, error);
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
	if (!family()) return nil;
	return [SWDevice new];
}
