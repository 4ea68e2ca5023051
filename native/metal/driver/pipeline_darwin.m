// Kernels: from source to pipelines, by way of a binary archive on disk.
#include "internal_darwin.h"

static NSURL *file_url(const char *path) {
	return [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]];
}

void *rlx_archive_open(void *device, const char *path, rlx_error *e) {
	@autoreleasepool {
		MTLBinaryArchiveDescriptor *descriptor = [[[MTLBinaryArchiveDescriptor alloc] init] autorelease];
		if (path) [descriptor setUrl:file_url(path)];
		NSError *error = nil;
		id<MTLBinaryArchive> archive = [((rlx_device *)device)->device newBinaryArchiveWithDescriptor:descriptor error:&error];
		return archive ? archive : rlx_fail(e, RLX_FAILED, error, "a binary archive");
	}
}

int rlx_archive_save(void *archive, const char *path, rlx_error *e) {
	@autoreleasepool {
		NSError *error = nil;
		if ([(id<MTLBinaryArchive>)archive serializeToURL:file_url(path) error:&error]) return 1;
		rlx_fail(e, RLX_FAILED, error, "a binary archive");
		return 0;
	}
}

// Kernels rely on infinities and NaN being told by their bits and on division being
// rounded, so mathematics is not fast.
static MTLCompileOptions *compile_options(void) {
	MTLCompileOptions *options = [[[MTLCompileOptions alloc] init] autorelease];
	[options setFastMathEnabled:NO];
	[options setLanguageVersion:MTLLanguageVersion2_3];
	return options;
}

void *rlx_function(void *device, const char *source, const char *name, rlx_error *e) {
	@autoreleasepool {
		NSError *error = nil;
		id<MTLLibrary> library = [((rlx_device *)device)->device newLibraryWithSource:[NSString stringWithUTF8String:source]
		                                                                      options:compile_options()
		                                                                        error:&error];
		if (!library) return rlx_fail(e, RLX_SOURCE, error, "");
		id<MTLFunction> function = [library newFunctionWithName:[NSString stringWithUTF8String:name]];
		[library release];
		return function ? function : rlx_fail(e, RLX_SOURCE, nil, "the source has no such kernel");
	}
}

void *rlx_pipeline(void *device, void *function, uint64_t threads, void *archive, int add, rlx_error *e) {
	@autoreleasepool {
		MTLComputePipelineDescriptor *descriptor = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
		[descriptor setComputeFunction:(id<MTLFunction>)function];
		if (archive) [descriptor setBinaryArchives:[NSArray arrayWithObject:(id)archive]];
		NSError *error = nil;
		id<MTLComputePipelineState> pipeline =
			[((rlx_device *)device)->device newComputePipelineStateWithDescriptor:descriptor
			                                                              options:MTLPipelineOptionNone
			                                                           reflection:NULL
			                                                                error:&error];
		if (!pipeline) return rlx_fail(e, RLX_SOURCE, error, "");
		if ([pipeline maxTotalThreadsPerThreadgroup] < threads) {
			[pipeline release];
			return rlx_fail(e, RLX_SOURCE, nil, "the kernel takes too many registers for its threads");
		}
		if (archive && add) [(id<MTLBinaryArchive>)archive addComputePipelineFunctionsWithDescriptor:descriptor error:&error];
		return pipeline;
	}
}
