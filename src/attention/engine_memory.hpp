// All that a GradientEngine sets up once and works with. Internal.
#pragma once

#include "attention/block_kernels.hpp"
#include "attention/query_layout.hpp"
#include "attention/rounding_floor.hpp"
#include <attmirror/attention/gradient.hpp>

#include <cstddef>
#include <vector>

namespace attmirror {

// A head of the user's own, as the kernels' callback gets it.
struct CustomHeadObject {
  const CustomHead* head = nullptr;
  std::ptrdiff_t dim = 0;
};

// Where the blocks of attention lie among others, -1 for those that are not there: no step looks for a name.
struct BlockPlaces {
  std::ptrdiff_t W = -1, K = -1, Q = -1, p = -1, v = -1;
  explicit BlockPlaces(const std::vector<BlockShape>& blocks);
};

struct GradientEngine::Memory {
  const Attention* model;
  ThreadPool* pool;
  QueryLayout layout;
  kernels::EvaluateQueries evaluate;
  kernels::Problem problem;
  BlockPlaces all, trained;
  std::vector<float, CacheLineAllocator<float>> float_tokens;  // the tokens, where they are stored so
  PaddedMatrix head_weights;
  CustomHeadObject custom_head;

  // While v is not trained: the scores of the v that was evaluated last, those of sequence i from
  // sequence_places[i] on (and of query j from token_score_places[j]).
  AlignedVector scores;
  std::vector<std::ptrdiff_t> sequence_places, token_score_places;
  PaddedMatrix scored_decoder;  // that v

  struct Worker {  // one per chunk
    AlignedVector memory;
    kernels::Scratch scratch;
    kernels::Sums sums;
    Gradient gradient;                // where this chunk sums; unused for a single chunk
    PaddedMatrix direction_sum;       // of a prompt: sum of r_i, before the key weights
    PaddedMatrix widened_row;         // a token stored as floats
    double factor = 1, factor_v = 1;  // from the chunk's scale to the common one
  };
  std::vector<Worker> workers;
  PaddedMatrix direction;  // of a prompt: A^T p
  RoundingFloor floor;

  Memory(const Attention& m, const EngineOptions& options, ThreadPool& p);
  void round_tokens();
  void set_up_head();
  void set_up_scratch(Worker& worker) const;
  void update_scores(ConstMatrixView v);
  void form_direction(ConstMatrixView p);
  void begin(Worker& worker, Gradient* target);
  void finish_prompt(Gradient& gradient);
  double penalty(const ParameterBlocks& parameters, Gradient* gradient) const;
  void combine(Gradient& gradient);
  Evaluation run(const ParameterBlocks& parameters, Gradient* gradient);
};

// v^T x_t: what the scores of a fixed v are made of, whichever engine keeps them.
double decoder_score(ConstMatrixView token, ConstMatrixView v);

// |w|^2 over the trained blocks of the attention, which the penalty is lambda times of.
double penalized_square(const Attention& model, const ParameterBlocks& parameters);

}  // namespace attmirror
