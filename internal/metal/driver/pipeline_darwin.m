// Kernels: from source to pipelines, through a binary archive on disk.
#include "internal_darwin.h"

#include <string.h>

static NSURL *file_url(const char *path) {
	return [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]];
}

void *rlx_archive_open(void *device, const char *path, rlx_error *e) {
	@autoreleasepool {
		MTLBinaryArchiveDescriptor *descriptor = [[[MTLBinaryArchiveDescriptor alloc] init] autorelease];
		if (path) [descriptor setUrl:file_url(path)];
		NSError *error = nil;
		id<MTLBinaryArchive> archive = [((rlx_device *)device)->device newBinaryArchiveWithDescriptor:descriptor error:&error];
		return archive ? archive : rlx_metal_fail(e, RLX_FAILED, error, "a binary archive");
	}
}

int rlx_archive_save(void *archive, const char *path, rlx_error *e) {
	@autoreleasepool {
		NSError *error = nil;
		if ([(id<MTLBinaryArchive>)archive serializeToURL:file_url(path) error:&error]) return 1;
		rlx_metal_fail(e, RLX_FAILED, error, "a binary archive");
		return 0;
	}
}

// Kernels test infinities and NaN by their bits and need rounded division, so fast math is
// off. Kernels with bfloat use the first language version that has it.
static MTLCompileOptions *compile_options(const char *source) {
	MTLCompileOptions *options = [[[MTLCompileOptions alloc] init] autorelease];
	[options setFastMathEnabled:NO];
	[options setLanguageVersion:strstr(source, "bfloat") ? MTLLanguageVersion3_1 : MTLLanguageVersion2_3];
	return options;
}

static id<MTLLibrary> library_of(id<MTLDevice> device, const char *source, NSError **error) {
	return [device newLibraryWithSource:[NSString stringWithUTF8String:source] options:compile_options(source) error:error];
}

int rlx_has_bfloat(id<MTLDevice> device) {
	NSError *error = nil;
	id<MTLLibrary> library = library_of(device,
	                                    "#include <metal_stdlib>\nusing namespace metal;\n"
	                                    "kernel void has_bfloat(\n    device bfloat *x [[buffer(0)]]) {\n  x[0] = bfloat(0.0f);\n}\n",
	                                    &error);
	[library release];
	return library != nil;
}

void *rlx_function(void *device, const char *source, const char *name, rlx_error *e) {
	@autoreleasepool {
		NSError *error = nil;
		id<MTLLibrary> library = library_of(((rlx_device *)device)->device, source, &error);
		if (!library) return rlx_metal_fail(e, RLX_SOURCE, error, "");
		id<MTLFunction> function = [library newFunctionWithName:[NSString stringWithUTF8String:name]];
		[library release];
		return function ? function : rlx_metal_fail(e, RLX_SOURCE, nil, "the source lacks the kernel");
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
		if (!pipeline) return rlx_metal_fail(e, RLX_SOURCE, error, "");
		const char *unfit = NULL;
		if ([pipeline maxTotalThreadsPerThreadgroup] < threads) unfit = "the kernel needs too many registers for its threadgroup";
		if ([pipeline threadExecutionWidth] != RLX_SIMD_GROUP) unfit = "the kernel has a SIMD-group size other than 32";
		if (unfit) {
			[pipeline release];
			return rlx_metal_fail(e, RLX_SOURCE, nil, unfit);
		}
		if (archive && add) [(id<MTLBinaryArchive>)archive addComputePipelineFunctionsWithDescriptor:descriptor error:&error];
		return pipeline;
	}
}
