// Core ML in software: the classes that the binding uses. It checks the order and types of calls
// against Apple's documentation, counts objects, and computes by an rlx_evaluator.
#include <stdlib.h>
#include <string.h>

#include "keeps.h"

#import <CoreML/CoreML.h>

// rlx_devices returns the devices of a set. There is one of each kind for good.
NSArray *rlx_devices(int set);

rlx_evaluator rlx_evaluates;
long rlx_counted;
int rlx_older;

void rlx_software_install(const rlx_evaluator *e) { rlx_evaluates = *e; }
long rlx_software_alive(void) { return rlx_counted; }
void rlx_software_older(int older) { rlx_older = older; }

static id refuse(NSError **error, NSString *why) {
	if (error) *error = [NSError errorWithDomain:@"com.apple.CoreML" code:1 userInfo:@{NSLocalizedDescriptionKey : why}];
	return nil;
}

static long compiled;
long rlx_software_compiled(void) { return compiled; }
static long last_units;
long rlx_software_units(void) { return last_units; }
static long input;
long rlx_software_input(void) { return input; }

@implementation MLMultiArray

- (id)initWithDataPointer:(void *)pointer
                    shape:(NSArray *)dims
                 dataType:(MLMultiArrayDataType)dataType
                  strides:(NSArray *)steps
              deallocator:(void (^)(void *bytes))deallocator
                    error:(NSError **)error {
	if (!(self = [super init])) return nil;
	rlx_counted++;
	shape = [dims copy], strides = [steps copy], type = dataType, data = pointer;
	if (!pointer || [dims count] < 1 || [dims count] > RLX_AXES || [dims count] != [steps count]) {
		[self release];
		return refuse(error, @"a multi-array has data, one to five axes and a stride for each");
	}
	return self;
}

// initPadded makes an array whose rows take a multiple of 64 bytes.
- (id)initPadded:(const rlx_array *)like {
	NSMutableArray *dims = [NSMutableArray array], *steps = [NSMutableArray array];
	long size = like->type == RLX_FLOAT16 ? 2 : 4, step = 1;
	for (int i = like->rank - 1; i >= 0; i--) {
		[dims insertObject:@(like->dims[i]) atIndex:0];
		[steps insertObject:@(step) atIndex:0];
		step *= like->dims[i];
		if (i == like->rank - 1) step = (step * size + 63) / 64 * 64 / size;
	}
	void *memory = calloc(step, size);
	self = [self initWithDataPointer:memory shape:dims dataType:like->type strides:steps deallocator:nil error:NULL];
	owned = memory;
	return self;
}

- (void)dealloc {
	rlx_counted--;
	free(owned);
	[shape release];
	[strides release];
	[super dealloc];
}

- (MLMultiArrayDataType)dataType { return type; }
- (NSArray *)shape { return shape; }
- (NSArray *)strides { return strides; }
- (void *)dataPointer { return data; }

// move copies all elements to dense memory, or from it.
- (void)move:(char *)dense in:(BOOL)in {
	long size = type == MLMultiArrayDataTypeFloat16 ? 2 : 4, count = 1, rank = [shape count], at[RLX_AXES] = {0};
	for (NSNumber *d in shape) count *= [d longValue];
	for (long i = 0; i < count; i++) {
		long place = 0;
		for (long k = 0; k < rank; k++) place += at[k] * [[strides objectAtIndex:k] longValue];
		char *here = (char *)data + place * size;
		memcpy(in ? here : dense + i * size, in ? dense + i * size : here, size);
		for (long k = rank - 1; k >= 0 && ++at[k] == [[shape objectAtIndex:k] longValue]; k--) at[k] = 0;
	}
}

// fits reports whether the array has the type that a model declares.
- (BOOL)fits:(const rlx_array *)a {
	BOOL same = type == a->type && (int)[shape count] == a->rank;
	for (int i = 0; same && i < a->rank; i++) same = [[shape objectAtIndex:i] longLongValue] == a->dims[i];
	return same;
}
@end

@implementation MLFeatureValue
+ (MLFeatureValue *)featureValueWithMultiArray:(MLMultiArray *)value {
	MLFeatureValue *v = [[[self alloc] init] autorelease];
	v->array = [value retain];
	return v;
}
- (void)dealloc {
	[array release];
	[super dealloc];
}
- (MLMultiArray *)multiArrayValue { return array; }
@end

@implementation MLDictionaryFeatureProvider
- (id)initWithDictionary:(NSDictionary *)dictionary error:(NSError **)error {
	if ((self = [super init])) values = [dictionary copy];
	return self;
}
- (void)dealloc {
	[values release];
	[super dealloc];
}
- (MLFeatureValue *)featureValueForName:(NSString *)name { return [values objectForKey:name]; }
@end

@implementation MLPredictionOptions
- (void)setOutputBackings:(NSDictionary *)list {
	[backings autorelease];
	backings = [list copy];
}
- (void)dealloc {
	[backings release];
	[super dealloc];
}
@end

@implementation MLModelConfiguration
- (void)setComputeUnits:(MLComputeUnits)list { last_units = units = list; }
- (void)setFunctionName:(NSString *)name {
	[function autorelease];
	function = [name copy];
}
- (void)dealloc {
	[function release];
	[super dealloc];
}
@end

@implementation MLModel

+ (BOOL)instancesRespondToSelector:(SEL)selector {
	return !(rlx_older && sel_isEqual(selector, @selector(newState))) && [super instancesRespondToSelector:selector];
}

+ (NSArray *)availableComputeDevices { return rlx_devices(RLX_CPU | RLX_GPU | RLX_NEURAL_ENGINE); }

+ (NSURL *)compileModelAtURL:(NSURL *)url error:(NSError **)error {
	NSString *to = [NSTemporaryDirectory() stringByAppendingPathComponent:[[[NSProcessInfo processInfo] globallyUniqueString] stringByAppendingString:@".mlmodelc"]];
	if (![[NSFileManager defaultManager] copyItemAtPath:[url path] toPath:to error:error]) return nil;
	__atomic_fetch_add(&compiled, 1, __ATOMIC_RELAXED);
	return [NSURL fileURLWithPath:to];
}

+ (MLModel *)modelWithContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)c error:(NSError **)error {
	if (![[url path] hasSuffix:@".mlmodelc"]) return refuse(error, @"a package is compiled before it is loaded");
	MLModel *m = [[[self alloc] init] autorelease];
	rlx_why why;
	m->handle = rlx_evaluates.load([[url path] UTF8String], c->function ? [c->function UTF8String] : NULL, &m->in, &m->inputs, &m->out, &m->outputs, &why);
	return m->handle ? m : refuse(error, [NSString stringWithUTF8String:why.text]);
}

- (id)init {
	rlx_counted++;
	return [super init];
}

- (void)dealloc {
	rlx_counted--;
	if (handle) rlx_evaluates.release(handle);
	for (int i = 0; i < inputs; i++) free((void *)in[i].name);
	for (int i = 0; i < outputs; i++) free((void *)out[i].name);
	free(in);
	free(out);
	[super dealloc];
}

// handle is the evaluator's, for plans.
- (uintptr_t)handle { return handle; }

- (MLState *)newState {
	state = [[MLState alloc] init];
	state->handle = handle;
	return state;
}

- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)features usingState:(MLState *)s options:(MLPredictionOptions *)options error:(NSError **)error {
	if (!s || s != state) return refuse(error, @"the state is not one of this model");
	return [self predictionFromFeatures:features options:options error:error];
}

// give makes the multi-array of an output: the backing, for outputs of one axis, or
// one with padded rows.
- (MLMultiArray *)give:(const rlx_array *)a options:(MLPredictionOptions *)options {
	MLMultiArray *backing = [options->backings objectForKey:[NSString stringWithUTF8String:a->name]];
	MLMultiArray *to = a->rank == 1 && [backing fits:a] ? backing : [[[MLMultiArray alloc] initPadded:a] autorelease];
	[to move:a->data in:YES];
	return to;
}

- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)features options:(MLPredictionOptions *)options error:(NSError **)error {
	NSString *fault = nil;
	NSMutableDictionary *results = [NSMutableDictionary dictionary];
	for (int i = 0; i < inputs; i++) {
		MLMultiArray *a = [[features featureValueForName:[NSString stringWithUTF8String:in[i].name]] multiArrayValue];
		if (!a || ![a fits:&in[i]]) {
			fault = [NSString stringWithFormat:@"input %s is missing or not of the type that the model has", in[i].name];
			break;
		}
		input = (long)[a dataPointer];
		in[i].data = malloc(in[i].bytes);
		[a move:in[i].data in:NO];
	}
	for (int i = 0; i < outputs; i++) out[i].data = calloc(1, out[i].bytes);
	rlx_why why;
	if (!fault && rlx_evaluates.predict(handle, in, out, &why)) fault = [NSString stringWithUTF8String:why.text];
	for (int i = 0; !fault && i < outputs; i++) {
		MLMultiArray *a = [self give:&out[i] options:options];
		[results setObject:[MLFeatureValue featureValueWithMultiArray:a] forKey:[NSString stringWithUTF8String:out[i].name]];
	}
	for (int i = 0; i < inputs; i++) free(in[i].data), in[i].data = NULL;
	for (int i = 0; i < outputs; i++) free(out[i].data), out[i].data = NULL;
	if (fault) return refuse(error, fault);
	return [[[MLDictionaryFeatureProvider alloc] initWithDictionary:results error:error] autorelease];
}
@end
