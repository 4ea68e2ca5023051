// Libraries and pipelines of the software device: MSL becomes code for this processor, by
// way of clang and the header metal_stdlib next to this file.
#import "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

@interface SWCompileOptions : MTLCompileOptions {
@public
	BOOL fast, slow; // as requested
	MTLLanguageVersion version;
}
@end
SW_CLUSTER(MTLCompileOptions, SWCompileOptions)
@implementation SWCompileOptions
- (void)setFastMathEnabled:(BOOL)enabled { fast = enabled, slow = !enabled; }
- (void)setLanguageVersion:(MTLLanguageVersion)v { version = v; }
@end

SW_CLUSTER(MTLComputePipelineDescriptor, SWComputePipelineDescriptor)
@implementation SWComputePipelineDescriptor
- (void)setComputeFunction:(id<MTLFunction>)f {
	[(id)f retain];
	[function release];
	function = (SWFunction *)f;
}
- (void)setBinaryArchives:(NSArray *)list {
	[archives release];
	archives = [list copy];
}
- (void)dealloc {
	[function release];
	[archives release];
	[super dealloc];
}
@end

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static NSMutableArray *pending; // libraries that are not compiled yet
static int numbers;

@implementation SWLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString *)wanted {
	if (![wanted isEqualToString:name]) return nil;
	SWFunction *f = [SWFunction new];
	f->library = [self retain];
	pthread_mutex_lock(&lock);
	if (!pending) pending = [NSMutableArray new];
	if (!ready && [pending indexOfObjectIdenticalTo:self] == NSNotFound) [pending addObject:self];
	pthread_mutex_unlock(&lock);
	return f;
}
- (void)dealloc {
	[source release];
	[name release];
	[code release];
	[failure release];
	[super dealloc];
}
@end
@implementation SWFunction
- (void)dealloc {
	[library release];
	[super dealloc];
}
@end

id<MTLLibrary> sw_library(NSString *source, MTLCompileOptions *given, NSError **error) {
	SWCompileOptions *options = (SWCompileOptions *)given;
	BOOL bfloat = [source rangeOfString:@"bfloat"].location != NSNotFound;
	if (!options || !options->slow || options->version != (bfloat ? MTLLanguageVersion3_1 : MTLLanguageVersion2_3)) sw_violation("a library with fast mathematics, or of another version of the language");
	const char *refused = sw_setting("RLX_SOFTWARE_REFUSE", NULL);
	SWLibrary *lib = [SWLibrary new];
	lib->source = [source copy];
	pthread_mutex_lock(&lock);
	lib->number = numbers++;
	BOOL ok = sw_translate(lib) && !(bfloat && atoi(sw_setting("RLX_SOFTWARE_BFLOAT", "1")) == 0);
	sw_note("compile %s", [lib->name UTF8String]);
	if (ok && refused && [source rangeOfString:[NSString stringWithUTF8String:refused]].location != NSNotFound) ok = NO;
	if (ok) {
		NSUInteger most = strtoul([[[source componentsSeparatedByString:@"max_total_threads_per_threadgroup("] lastObject] UTF8String], NULL, 10);
		lib->threads = most ? most : sw_threads_max;
		lib->synchronises = [source rangeOfString:@"threadgroup_barrier("].location != NSNotFound || [source rangeOfString:@"simd_"].location != NSNotFound || [source rangeOfString:@"simdgroup_"].location != NSNotFound;
	}
	pthread_mutex_unlock(&lock);
	if (ok) return lib;
	*error = sw_error(@"MTLLibraryErrorDomain", 3, "program_source:1:1: error: this is no kernel");
	[lib release];
	return nil;
}

// build compiles several libraries together and returns an error text or nil.
static NSString *build(NSArray *libraries) {
	const char *clang = sw_setting("RLX_SOFTWARE_CLANG", NULL), *folder = sw_setting("RLX_SOFTWARE_FOLDER", "/tmp");
	if (!clang) return nil; // kernels are noted only
	NSString *base = [NSString stringWithFormat:@"%s/k%d-%d", folder, getpid(), ((SWLibrary *)[libraries objectAtIndex:0])->number];
	NSString *text = [base stringByAppendingString:@".cc"], *object = [base stringByAppendingString:@".so"], *messages = [base stringByAppendingString:@".log"];
	NSMutableString *code = [NSMutableString string];
	for (SWLibrary *lib in libraries) [code appendString:lib->code];
	[code writeToFile:text atomically:NO encoding:NSUTF8StringEncoding error:NULL];
	NSString *command = [NSString stringWithFormat:@"%s -x c++ -std=c++17 %s -o %@ %@ -lm -lgcc 2>%@", clang, sw_setting("RLX_SOFTWARE_FLAGS", ""), object, text, messages];
	if (system([command UTF8String])) return sw_contents(messages);
	void *image = dlopen([object UTF8String], RTLD_NOW | RTLD_LOCAL);
	if (!image) return [NSString stringWithUTF8String:dlerror()];
	for (SWLibrary *lib in libraries) lib->kernel = (sw_kernel)dlsym(image, [[NSString stringWithFormat:@"sw_call_%d", lib->number] UTF8String]);
	for (NSString *file in [NSArray arrayWithObjects:text, object, messages, nil]) unlink([file UTF8String]);
	return nil;
}

// build_pending compiles all pending libraries at once, which takes a tenth of the time; if one is
// refused, it compiles them one by one.
static void build_pending(void) {
	NSArray *list = pending;
	pending = [NSMutableArray new];
	BOOL together = build(list) == nil;
	for (SWLibrary *lib in list) {
		if (!together) lib->failure = [build([NSArray arrayWithObject:lib]) copy];
		lib->ready = 1;
	}
	[list release];
}

@implementation SWPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup { return threads; }
- (NSUInteger)threadExecutionWidth { return width; }
- (void)dealloc {
	[name release];
	[super dealloc];
}
@end

id<MTLComputePipelineState> sw_pipeline(MTLComputePipelineDescriptor *descriptor, NSError **error) {
	SWComputePipelineDescriptor *d = (SWComputePipelineDescriptor *)descriptor;
	SWLibrary *lib = d->function->library;
	pthread_mutex_lock(&lock);
	if (!lib->ready) build_pending();
	pthread_mutex_unlock(&lock);
	if (lib->failure) {
		*error = sw_error(@"MTLLibraryErrorDomain", 3, [lib->failure UTF8String]);
		return nil;
	}
	sw_note(sw_archived(d->archives, lib) ? "found %s" : "pipeline %s", [lib->name UTF8String]);
	SWPipeline *p = [SWPipeline new];
	p->name = [lib->name copy];
	p->kernel = lib->kernel;
	p->synchronises = lib->synchronises;
	p->buffers = lib->buffers;
	p->threads = sw_fails("threads") ? 1 : lib->threads;
	int width = sw_fails("width");
	p->width = width ? width : sw_simd;
	return p;
}
