// Libraries and pipelines of the software device: MSL becomes code for this processor, by
// way of clang and the header metal_stdlib beside this file.
#import "software.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

@interface SWLibrary : SWObject <MTLLibrary> {
@public
	NSString *source, *name, *code; // code is the C++ that it becomes
	int number, meets, ready;
	NSUInteger buffers, threads;
	sw_kernel kernel;
	NSString *failure;
}
@end

@interface SWFunction : SWObject <MTLFunction> {
@public
	SWLibrary *library;
}
@end

@interface SWCompileOptions : MTLCompileOptions {
@public
	BOOL fast, slow; // asked for
	MTLLanguageVersion version;
}
@end
SW_CLUSTER(MTLCompileOptions, SWCompileOptions)
@implementation SWCompileOptions
- (void)setFastMathEnabled:(BOOL)enabled { fast = enabled, slow = !enabled; }
- (void)setLanguageVersion:(MTLLanguageVersion)v { version = v; }
@end

@interface SWComputePipelineDescriptor : MTLComputePipelineDescriptor {
@public
	SWFunction *function;
	NSArray *archives;
}
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

// Values of a kernel's thread by the attribute of the parameter that wants them.
static const struct {
	const char *attribute, *value;
} thread_values[] = {
	{"thread_position_in_threadgroup", "sw_three(t->local)"},
	{"threadgroup_position_in_grid", "sw_three(t->group)"},
	{"thread_index_in_threadgroup", "t->index"},
	{"thread_index_in_simdgroup", "t->lane"},
	{"threads_per_simdgroup", "sw_simd"},
};

static NSString *trim(NSString *s) { return [s stringByTrimmingCharactersInSet:[NSCharacterSet whitespaceAndNewlineCharacterSet]]; }

static NSString *without(NSString *s, NSString *words) { return trim([s stringByReplacingOccurrencesOfString:words withString:@""]); }

// parameter adds one parameter of a kernel and what is passed for it; NO where it is none
// that Metal would take.
static BOOL parameter(SWLibrary *lib, NSString *text, NSMutableArray *declared, NSMutableArray *passed) {
	NSRange at = [text rangeOfString:@"[["];
	if (at.location == NSNotFound) return NO;
	NSString *declaration = trim([text substringToIndex:at.location]);
	NSString *attribute = without([text substringFromIndex:at.location + 2], @"]]");
	for (size_t i = 0; i < sizeof thread_values / sizeof *thread_values; i++)
		if ([attribute isEqualToString:[NSString stringWithUTF8String:thread_values[i].attribute]]) {
			[declared addObject:declaration];
			[passed addObject:[NSString stringWithUTF8String:thread_values[i].value]];
			return YES;
		}
	int index = 0;
	BOOL isConstant = [declaration hasPrefix:@"constant "];
	if (sscanf([attribute UTF8String], "buffer(%d)", &index) != 1 || index >= sw_table || !(isConstant || [declaration hasPrefix:@"device "])) return NO;
	if (lib->buffers < index + 1u) lib->buffers = index + 1;
	NSRange star = [declaration rangeOfCharacterFromSet:[NSCharacterSet characterSetWithCharactersInString:@"*&"]];
	if (star.location == NSNotFound) return NO;
	NSString *type = without(without([declaration substringToIndex:star.location], @"device "), @"constant ");
	NSString *name = [declaration substringFromIndex:star.location + 1];
	if ([declaration characterAtIndex:star.location] == '&') {
		[declared addObject:[NSString stringWithFormat:@"const %@ &%@", type, name]];
		[passed addObject:[NSString stringWithFormat:@"sw_whole<%@>(table[%d])", type, index]];
		return YES;
	}
	[declared addObject:[NSString stringWithFormat:@"const sw_buffer<%s%@> %@", isConstant ? "const " : "", type, name]];
	[passed addObject:[NSString stringWithFormat:@"table[%d]", index]];
	return YES;
}

// translate makes C++ of a source with one kernel: its parameters become ones that know
// their bounds, and a function that calls it has the name sw_call_ and the number.
static BOOL translate(SWLibrary *lib) {
	NSRange head = [lib->source rangeOfString:@"kernel void "];
	if (head.location == NSNotFound) return NO;
	NSUInteger start = NSMaxRange(head);
	NSRange rest = NSMakeRange(start, [lib->source length] - start);
	NSRange open = [lib->source rangeOfString:@"(" options:0 range:rest], close = [lib->source rangeOfString:@") {" options:0 range:rest];
	if (open.location == NSNotFound || close.location == NSNotFound) return NO;
	lib->name = [[lib->source substringWithRange:NSMakeRange(start, open.location - start)] retain];
	NSMutableArray *declared = [NSMutableArray array], *passed = [NSMutableArray array];
	NSString *list = [lib->source substringWithRange:NSMakeRange(open.location + 1, close.location - open.location - 1)];
	for (NSString *text in [list componentsSeparatedByString:@","])
		if (!parameter(lib, text, declared, passed)) return NO;
	lib->code = [[NSString stringWithFormat:@"namespace sw_%d {\n#line 1 \"%@\"\n%@(%@%@\nextern \"C\" void sw_call_%d(const sw_argument *table, const sw_thread *t) { %@(%@); }\n}\n",
	                                        lib->number, lib->name, [lib->source substringToIndex:open.location], [declared componentsJoinedByString:@",\n"],
	                                        [lib->source substringFromIndex:close.location], lib->number, lib->name, [passed componentsJoinedByString:@", "]] retain];
	return YES;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static NSMutableArray *pending; // libraries that are not compiled yet
static int numbers;

@implementation SWLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString *)wanted {
	if (![wanted isEqualToString:name]) return nil;
	SWFunction *f = [SWFunction new];
	f->library = [self retain];
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
	if (!options || !options->slow || options->version != MTLLanguageVersion2_3) sw_violation("a library with fast mathematics, or of another version of the language");
	const char *refused = sw_setting("RLX_SOFTWARE_REFUSE", NULL);
	SWLibrary *lib = [SWLibrary new];
	lib->source = [source copy];
	pthread_mutex_lock(&lock);
	lib->number = numbers++;
	BOOL ok = translate(lib);
	sw_note("compile %s", [lib->name UTF8String]);
	if (ok && refused && [source rangeOfString:[NSString stringWithUTF8String:refused]].location != NSNotFound) ok = NO;
	if (ok) {
		if (!pending) pending = [NSMutableArray new];
		NSUInteger most = strtoul([[[source componentsSeparatedByString:@"max_total_threads_per_threadgroup("] lastObject] UTF8String], NULL, 10);
		lib->threads = most ? most : sw_threads_max;
		lib->meets = [source rangeOfString:@"threadgroup_barrier("].location != NSNotFound || [source rangeOfString:@"simd_"].location != NSNotFound;
		[pending addObject:lib];
	}
	pthread_mutex_unlock(&lock);
	if (ok) return lib;
	*error = sw_error(@"MTLLibraryErrorDomain", 3, "program_source:1:1: error: this is no kernel");
	[lib release];
	return nil;
}

static NSString *contents(NSString *path) { return [NSString stringWithContentsOfFile:path encoding:NSUTF8StringEncoding error:NULL]; }

// build compiles the code of some libraries together and returns why that failed.
static NSString *build(NSArray *libraries) {
	const char *clang = sw_setting("RLX_SOFTWARE_CLANG", NULL), *folder = sw_setting("RLX_SOFTWARE_FOLDER", "/tmp");
	if (!clang) return nil; // kernels are noted only
	NSString *base = [NSString stringWithFormat:@"%s/k%d-%d", folder, getpid(), ((SWLibrary *)[libraries objectAtIndex:0])->number];
	NSString *text = [base stringByAppendingString:@".cc"], *object = [base stringByAppendingString:@".so"], *messages = [base stringByAppendingString:@".log"];
	NSMutableString *code = [NSMutableString string];
	for (SWLibrary *lib in libraries) [code appendString:lib->code];
	[code writeToFile:text atomically:NO encoding:NSUTF8StringEncoding error:NULL];
	NSString *command = [NSString stringWithFormat:@"%s -x c++ -std=c++17 %s -o %@ %@ 2>%@", clang, sw_setting("RLX_SOFTWARE_FLAGS", ""), object, text, messages];
	if (system([command UTF8String])) return contents(messages);
	void *image = dlopen([object UTF8String], RTLD_NOW | RTLD_LOCAL);
	if (!image) return [NSString stringWithUTF8String:dlerror()];
	for (SWLibrary *lib in libraries) lib->kernel = (sw_kernel)dlsym(image, [[NSString stringWithFormat:@"sw_call_%d", lib->number] UTF8String]);
	for (NSString *file in [NSArray arrayWithObjects:text, object, messages, nil]) unlink([file UTF8String]);
	return nil;
}

// build_pending compiles all libraries that wait for it at once, as that takes a tenth of
// the time; where one is refused, each by itself.
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
- (void)dealloc {
	[name release];
	[super dealloc];
}
@end

// SWArchive is a file of one line for each pipeline: a number made of its source.
@interface SWBinaryArchiveDescriptor : MTLBinaryArchiveDescriptor {
@public
	NSURL *url;
}
@end
SW_CLUSTER(MTLBinaryArchiveDescriptor, SWBinaryArchiveDescriptor)
@implementation SWBinaryArchiveDescriptor
- (void)setUrl:(NSURL *)u {
	[u retain];
	[url release];
	url = u;
}
- (void)dealloc {
	[url release];
	[super dealloc];
}
@end
@interface SWArchive : SWObject <MTLBinaryArchive> {
@public
	NSMutableSet *held;
}
@end

static NSString *const magic = @"software archive";
static NSString *key(SWLibrary *lib) { return [NSString stringWithFormat:@"%lu", (unsigned long)[lib->source hash]]; }

@implementation SWArchive
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor error:(NSError **)error {
	SWComputePipelineDescriptor *d = (SWComputePipelineDescriptor *)descriptor;
	@synchronized(self) {
		[held addObject:key(d->function->library)];
	}
	return YES;
}
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error {
	NSString *text = [[[NSArray arrayWithObject:magic] arrayByAddingObjectsFromArray:[held allObjects]] componentsJoinedByString:@"\n"];
	if ([text writeToFile:[url path] atomically:NO encoding:NSUTF8StringEncoding error:NULL]) return YES;
	*error = sw_error(@"MTLBinaryArchiveDomain", 1, "the file cannot be written");
	return NO;
}
- (void)dealloc {
	[held release];
	[super dealloc];
}
@end

id<MTLBinaryArchive> sw_archive(MTLBinaryArchiveDescriptor *descriptor, NSError **error) {
	SWBinaryArchiveDescriptor *d = (SWBinaryArchiveDescriptor *)descriptor;
	SWArchive *a = [SWArchive new];
	a->held = [NSMutableSet new];
	if (!d->url) return a;
	NSArray *lines = [contents([d->url path]) componentsSeparatedByString:@"\n"];
	if ([[lines objectAtIndex:0] isEqualToString:magic]) {
		[a->held addObjectsFromArray:lines];
		return a;
	}
	*error = sw_error(@"MTLBinaryArchiveDomain", 1, "the file is no archive");
	[a release];
	return nil;
}

static BOOL archived(NSArray *archives, SWLibrary *lib) {
	for (SWArchive *a in archives)
		@synchronized(a) {
			if ([a->held containsObject:key(lib)]) return YES;
		}
	return NO;
}

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
	sw_note(archived(d->archives, lib) ? "found %s" : "pipeline %s", [lib->name UTF8String]);
	SWPipeline *p = [SWPipeline new];
	p->name = [lib->name copy];
	p->kernel = lib->kernel;
	p->meets = lib->meets;
	p->buffers = lib->buffers;
	p->threads = sw_fails("threads") ? 1 : lib->threads;
	return p;
}
