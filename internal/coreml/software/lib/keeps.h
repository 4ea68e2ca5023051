// What objects of the Core ML in software keep: the files of it include this before the
// header of Core ML. An array owns memory that it made itself; a model knows the state
// that was asked for last, as its values are in the evaluator.
#include "software.h"

#define RLX_KEEPS(class) KEEPS_##class
#define KEEPS_MLMultiArray { NSArray *shape, *strides; MLMultiArrayDataType type; void *data; void *owned; }
#define KEEPS_MLFeatureValue { MLMultiArray *array; }
#define KEEPS_MLDictionaryFeatureProvider { NSDictionary *values; }
#define KEEPS_MLPredictionOptions { @public NSDictionary *backings; }
#define KEEPS_MLModelConfiguration { @public NSString *function; MLComputeUnits units; }
#define KEEPS_MLModel { uintptr_t handle; rlx_array *in, *out; int inputs, outputs; MLState *state; }
#define KEEPS_MLState { @public uintptr_t handle; }
#define KEEPS_MLModelStructureProgramNamedValueType { @public NSString *name; }
#define KEEPS_MLModelStructureProgramOperation { @public rlx_placement at; }
#define KEEPS_MLModelStructureProgramBlock { @public NSArray *operations; }
#define KEEPS_MLModelStructureProgramFunction { @public NSArray *operations; }
#define KEEPS_MLModelStructureProgram { @public NSString *function; NSArray *operations; }
#define KEEPS_MLModelStructure { @public NSString *function; NSArray *operations; }
#define KEEPS_MLComputePlanDeviceUsage { @public int preferred, supported; }
#define KEEPS_MLComputePlanCost { @public double weight; }
#define KEEPS_MLComputePlan { @public NSString *function; NSArray *operations; }
