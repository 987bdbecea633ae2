package pgxguard

// PipelineOf is how a connection becomes a pipeline.
var PipelineOf = pipelineOf
