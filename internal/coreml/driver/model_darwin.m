// Models of Core ML.
#include "internal_darwin.h"

void *rlx_coreml_fail(rlx_why *why, const char *what, NSError *from) {
	const char *text = from ? [[from localizedDescription] UTF8String] : NULL;
	snprintf(why->text, sizeof why->text, "%s%s%s", what, text ? ": " : "", text ? text : "");
	return NULL;
}

static void release_model(void *handle) {
	@autoreleasepool {
		rlx_model *m = handle;
		[m->state release];
		[m->model release];
		[m->compiled release];
		[m->configuration release];
		[m->function release];
		free(m);
	}
}

// configuration returns one for a function and units, nil where the system is too old
// for packages of several functions.
static MLModelConfiguration *configuration(const char *function, int units, rlx_why *why) {
	static const MLComputeUnits list[] = { // by the numbers of package driver, the default among them
		MLComputeUnitsAll, MLComputeUnitsAll, MLComputeUnitsCPUOnly, MLComputeUnitsCPUAndGPU, MLComputeUnitsCPUAndNeuralEngine,
	};
	MLModelConfiguration *c = [[[MLModelConfiguration alloc] init] autorelease];
	[c setComputeUnits:list[units]];
	if (!function) return c;
	if (![c respondsToSelector:@selector(setFunctionName:)]) return rlx_coreml_fail(why, "packages of several functions need macOS 15 or iOS 18", nil);
	[c setFunctionName:[NSString stringWithUTF8String:function]];
	return c;
}

static NSURL *file_url(const char *path) { return [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]]; }

static char *compile(const char *package, rlx_why *why) {
	@autoreleasepool {
		NSError *error = nil;
		NSURL *compiled = [MLModel compileModelAtURL:file_url(package) error:&error];
		return compiled ? strdup([[compiled path] UTF8String]) : rlx_coreml_fail(why, "Core ML cannot compile the package", error);
	}
}

static void *load(const char *compiled, const char *function, int units, int states, rlx_why *why) {
	@autoreleasepool {
		NSError *error = nil;
		MLModelConfiguration *c = configuration(function, units, why);
		if (!c) return NULL;
		rlx_model *m = calloc(1, sizeof *m);
		m->compiled = [file_url(compiled) retain];
		m->configuration = [c retain];
		m->function = [[NSString alloc] initWithUTF8String:function ? function : "main"];
		m->model = [[MLModel modelWithContentsOfURL:m->compiled configuration:c error:&error] retain];
		if (!m->model) {
			rlx_coreml_fail(why, "Core ML cannot load the model", error);
			release_model(m);
			return NULL;
		}
		if (states) {
			if ([m->model respondsToSelector:@selector(newState)]) m->state = (NSObject *)[m->model newState];
			if (!m->state) {
				rlx_coreml_fail(why, "states need macOS 15 or iOS 18", nil);
				release_model(m);
				return NULL;
			}
		}
		return m;
	}
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
		return rlx_coreml_fail(why, [[e reason] UTF8String], nil);
	}
	return got ? got : rlx_coreml_fail(why, "Core ML cannot run the model", error);
}

static int predict(void *handle, const rlx_array *in, int inputs, rlx_array *out, int outputs, rlx_why *why) {
	@autoreleasepool {
		NSError *error = nil;
		NSMutableDictionary *values = [NSMutableDictionary dictionary], *backings = [NSMutableDictionary dictionary];
		for (int i = 0; i < inputs; i++) {
			MLMultiArray *a = rlx_around(&in[i], &error);
			if (!a) return rlx_coreml_fail(why, in[i].name, error), 1;
			[values setObject:[MLFeatureValue featureValueWithMultiArray:a] forKey:[NSString stringWithUTF8String:in[i].name]];
		}
		for (int i = 0; i < outputs; i++) {
			MLMultiArray *a = rlx_around(&out[i], &error);
			if (!a) return rlx_coreml_fail(why, out[i].name, error), 1;
			[backings setObject:a forKey:[NSString stringWithUTF8String:out[i].name]];
		}
		id<MLFeatureProvider> got = run(handle, values, backings, why);
		if (!got) return 1;
		for (int i = 0; i < outputs; i++) {
			MLFeatureValue *v = [got featureValueForName:[NSString stringWithUTF8String:out[i].name]];
			if (rlx_move([v multiArrayValue], &out[i], 0, why)) return 1;
		}
		return 0;
	}
}

static int state(void *handle, const rlx_array *array, int write, rlx_why *why) {
	@autoreleasepool {
		__block int failed = 1;
		snprintf(why->text, sizeof why->text, "unknown state %s", array->name);
		@try {
			[(MLState *)((rlx_model *)handle)->state getMultiArrayForStateNamed:[NSString stringWithUTF8String:array->name]
			                                                            handler:^(MLMultiArray *buffer) {
				                                                            failed = rlx_move(buffer, array, write, why);
			                                                            }];
		} @catch (NSException *e) {
			rlx_coreml_fail(why, [[e reason] UTF8String], nil);
		}
		return failed;
	}
}

static const rlx_coreml binding = {rlx_describe, compile, load, predict, state, rlx_plan, release_model};

const rlx_coreml *rlx_coreml_binding(void) { return &binding; }
