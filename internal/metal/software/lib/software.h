// What the parts of the software device share.
#include <stddef.h>
#include <stdint.h>

// sw_argument is a place of the buffer argument table: where it begins and how long it is.
typedef struct {
	char *base;
	size_t bytes;
} sw_argument;

// sw_thread is the position of a kernel's thread.
typedef struct {
	unsigned local[3], group[3], index, lane;
} sw_thread;

enum { sw_table = 31, sw_simd = 32, sw_threads_max = 1024 };

// sw_kernel is a compiled kernel: one thread of it.
typedef void (*sw_kernel)(const sw_argument *table, const sw_thread *thread);

// sw_run runs a kernel, as fibers if its threads synchronise (synchronises is set). It returns 0, or 1
// with the kernel's fault in text.
int sw_run(sw_kernel kernel, int synchronises, const sw_argument *table, const unsigned groups[3], const unsigned threads[3], char *text, size_t n);

// note adds a line to the log of calls; violation one that begins so, which a test takes
// for a failure: the API was used as its documentation forbids.
void sw_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sw_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *sw_setting(const char *name, const char *otherwise);
// sw_fails returns the code that this call of a name is to fail with, 0 for none:
// RLX_SOFTWARE_FAIL is "commit 8 3" for the third commit to fail with code 8.
int sw_fails(const char *name);

#ifdef __OBJC__
#import <Metal/Metal.h>

// SWObject counts how many objects there are of all kinds.
@interface SWObject : NSObject
@end

@interface SWBuffer : SWObject <MTLBuffer> {
@public
	char *memory;
	NSUInteger bytes;
	id heap;
}
@end

@interface SWPipeline : SWObject <MTLComputePipelineState> {
@public
	NSString *name;
	sw_kernel kernel; // NULL for one that is noted only
	int synchronises;
	NSUInteger buffers, threads, width;
}
@end

// A descriptor of Metal is a class whose objects are those of a class here, which has the
// variables: this runtime takes none in the implementation.
#define SW_CLUSTER(name, own)                                   \
	_Pragma("clang diagnostic push")                            \
	_Pragma("clang diagnostic ignored \"-Wincomplete-implementation\"") \
	@implementation name                                        \
	+ (id)alloc { return self == [name class] ? [own alloc] : [super alloc]; } \
	@end                                                        \
	_Pragma("clang diagnostic pop")

id<MTLCommandQueue> sw_queue(void);
// sw_residency returns a residency set, and sw_resident whether a heap is in one that was
// committed.
id<MTLResidencySet> sw_residency(void);
int sw_resident(id<MTLResidencySet> set, id heap);
NSError *sw_error(NSString *domain, NSInteger code, const char *text);
// sw_compile compiles the library's kernels. It returns NULL and an error on failure.
id<MTLLibrary> sw_library(NSString *source, MTLCompileOptions *options, NSError **error);
id<MTLComputePipelineState> sw_pipeline(MTLComputePipelineDescriptor *descriptor, NSError **error);
id<MTLBinaryArchive> sw_archive(MTLBinaryArchiveDescriptor *descriptor, NSError **error);
#endif
