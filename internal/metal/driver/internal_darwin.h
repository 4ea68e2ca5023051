// What the parts of the binding share.
#import <Metal/Metal.h>

#include "binding.h"

// Residency sets came with macOS 15. Protocols of our own name their methods, so that the SDKs
// of older systems compile this too.
@protocol rlx_residency_set <NSObject>
- (void)addAllocation:(id)allocation;
- (void)removeAllocation:(id)allocation;
- (void)commit;
- (void)requestResidency;
@end

@protocol rlx_residency <NSObject>
- (id<rlx_residency_set>)newResidencySetWithDescriptor:(id)descriptor error:(NSError **)error; // of a device
- (void)addResidencySet:(id<rlx_residency_set>)set;                                           // of a queue
@end

// rlx_device is an open device with its queue.
typedef struct {
	id<MTLDevice> device;
	id<MTLCommandQueue> queue;
	id<rlx_residency_set> residency; // all heaps, resident for the queue; nil before macOS 15
	int bfloat;                    // its compiler has the type bfloat
} rlx_device;

// rlx_metal_fail fills an error from Metal's, which may be nil, and returns NULL.
void *rlx_metal_fail(rlx_error *e, int kind, NSError *from, const char *what);

// rlx_has_bfloat compiles a kernel to find out.
int rlx_has_bfloat(id<MTLDevice> device);

void *rlx_archive_open(void *device, const char *path, rlx_error *e);
int rlx_archive_save(void *archive, const char *path, rlx_error *e);
void *rlx_function(void *device, const char *source, const char *name, rlx_error *e);
void *rlx_pipeline(void *device, void *function, uint64_t threads, void *archive, int add, rlx_error *e);
rlx_run *rlx_commit(void *device, const char *label, const rlx_command *list, size_t count, rlx_error *e);
void rlx_forget(rlx_run *run);
