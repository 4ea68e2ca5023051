// Models of Core ML.
#include "internal_darwin.h"

void *rlx_fail(rlx_why *why, const char *what, NSError *from) {
	const char *text = from ? [[from localizedDescription] UTF8String] : NULL;
	snprintf(why->text, sizeof why->text, "%s%s%s", what, text ? ": " : "", text ? text : "");
	return NULL;
}

static void release_model(void *handle) {
	@autoreleasepool {
		rlx_model *m = handle;
		[m->state release];
		[m->model release];
		if (m->compiled) [[NSFileManager defaultManager] removeItemAtPath:[m->compiled path] error:NULL];
		[m->compiled release];
		[m->configuration release];
		[m->function release];
		free(m);
	}
}

// configuration returns one for a function and units, nil where the system is too old
// for packages of several functions.
static MLModelConfiguration *configuration(const char *function, int units, rlx_why *why) {
	static const MLComputeUnits list[] = {
		MLComputeUnitsAll, MLComputeUnitsCPUOnly, MLComputeUnitsCPUAndGPU, MLComputeUnitsCPUAndNeuralEngine,
	};
	MLModelConfiguration *c = [[[MLModelConfiguration alloc] init] autorelease];
	[c setComputeUnits:list[units]];
	if (!function) return c;
	if (![c respondsToSelector:@selector(setFunctionName:)]) return rlx_fail(why, "packages of several functions need macOS 15 or iOS 18", nil);
	[c setFunctionName:[NSString stringWithUTF8String:function]];
	return c;
}

static void *load(const char *package, const char *function, int units, int states, rlx_why *why) {
	@autoreleasepool {
		NSError *error = nil;
		MLModelConfiguration *c = configuration(function, units, why);
		if (!c) return NULL;
		NSURL *url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:package]];
		NSURL *compiled = [MLModel compileModelAtURL:url error:&error];
		if (!compiled) return rlx_fail(why, "Core ML does not compile the package", error);
		rlx_model *m = calloc(1, sizeof *m);
		m->compiled = [compiled retain];
		m->configuration = [c retain];
		m->function = [[NSString alloc] initWithUTF8String:function ? function : "main"];
		m->model = [[MLModel modelWithContentsOfURL:compiled configuration:c error:&error] retain];
		if (!m->model) {
			rlx_fail(why, "Core ML does not load the model", error);
			release_model(m);
			return NULL;
		}
		if (states) {
			if ([m->model respondsToSelector:@selector(newState)]) m->state = (NSObject *)[m->model newState];
			if (!m->state) {
				rlx_fail(why, "states need macOS 15 or iOS 18", nil);
				release_model(m);
				return NULL;
			}
		}
		return m;
	}
}

// around returns a multi-array on the memory of an array, which must outlive it.
static MLMultiArray *around(const rlx_array *a, NSError **error) {
	NSMutableArray *shape = [NSMutableArray array], *strides = [NSMutableArray array];
	int64_t step = 1;
	for (int i = a->rank - 1; i >= 0; i--) {
		[shape insertObject:[NSNumber numberWithLongLong:a->dims[i]] atIndex:0];
		[strides insertObject:[NSNumber numberWithLongLong:step] atIndex:0];
		step *= a->dims[i];
	}
	return [[[MLMultiArray alloc] initWithDataPointer:a->data
	                                            shape:shape
	                                         dataType:(MLMultiArrayDataType)a->type
	                                          strides:strides
	                                      deallocator:nil
	                                            error:error] autorelease];
}

static size_t element_size(int type) { return type == RLX_FLOAT16 ? 2 : 4; }

// copy brings the elements of a multi-array, which may lie apart, to an array: Core ML
// pads rows as its device likes them.
static int copy(MLMultiArray *from, rlx_array *to, rlx_why *why) {
	NSArray *shape = [from shape], *strides = [from strides];
	int same = from && (int)[from dataType] == to->type && (int)[shape count] == to->rank;
	for (int i = 0; same && i < to->rank; i++) same = [[shape objectAtIndex:i] longLongValue] == to->dims[i];
	if (!same) {
		snprintf(why->text, sizeof why->text, "output %s has not the type that the package declares", to->name);
		return 1;
	}
	const char *base = [from dataPointer];
	if (base == to->data) return 0; // it was written there
	size_t size = element_size(to->type), count = to->bytes / size;
	int64_t at[RLX_AXES] = {0};
	for (size_t i = 0; i < count; i++) {
		int64_t place = 0;
		for (int k = 0; k < to->rank; k++) place += at[k] * [[strides objectAtIndex:k] longLongValue];
		memcpy((char *)to->data + i * size, base + place * (int64_t)size, size);
		for (int k = to->rank - 1; k >= 0 && ++at[k] == to->dims[k]; k--) at[k] = 0;
	}
	return 0;
}

// run asks Core ML for a prediction. Core ML raises exceptions for some faults.
static id<MLFeatureProvider> run(rlx_model *m, NSDictionary *values, NSDictionary *backings, rlx_why *why) {
	NSError *error = nil;
	id<MLFeatureProvider> got = nil;
	MLDictionaryFeatureProvider *in = [[[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:&error] autorelease];
	MLPredictionOptions *options = [[[MLPredictionOptions alloc] init] autorelease];
	if ([options respondsToSelector:@selector(setOutputBackings:)]) [options setOutputBackings:backings];
	@try {
		if (in && m->state) got = [m->model predictionFromFeatures:in usingState:(MLState *)m->state options:options error:&error];
		if (in && !m->state) got = [m->model predictionFromFeatures:in options:options error:&error];
	} @catch (NSException *e) {
		return rlx_fail(why, [[e reason] UTF8String], nil);
	}
	return got ? got : rlx_fail(why, "Core ML does not run the model", error);
}

static int predict(void *handle, const rlx_array *in, int inputs, rlx_array *out, int outputs, rlx_why *why) {
	@autoreleasepool {
		NSError *error = nil;
		NSMutableDictionary *values = [NSMutableDictionary dictionary], *backings = [NSMutableDictionary dictionary];
		for (int i = 0; i < inputs; i++) {
			MLMultiArray *a = around(&in[i], &error);
			if (!a) return rlx_fail(why, in[i].name, error), 1;
			[values setObject:[MLFeatureValue featureValueWithMultiArray:a] forKey:[NSString stringWithUTF8String:in[i].name]];
		}
		for (int i = 0; i < outputs; i++) {
			MLMultiArray *a = around(&out[i], &error);
			if (!a) return rlx_fail(why, out[i].name, error), 1;
			[backings setObject:a forKey:[NSString stringWithUTF8String:out[i].name]];
		}
		id<MLFeatureProvider> got = run(handle, values, backings, why);
		if (!got) return 1;
		for (int i = 0; i < outputs; i++) {
			MLFeatureValue *v = [got featureValueForName:[NSString stringWithUTF8String:out[i].name]];
			if (copy([v multiArrayValue], &out[i], why)) return 1;
		}
		return 0;
	}
}

static const rlx_coreml binding = {rlx_describe, load, predict, rlx_plan, release_model};

const rlx_coreml *rlx_coreml_binding(void) { return &binding; }
