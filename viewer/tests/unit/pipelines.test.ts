// The page's pipelines against the C++ ones: when each action starts and ends, what follows from the
// order, and every finding, also of mutants, as fields and in English.
import { describe, expect, it } from 'vitest';
import { editPipeline, parsePipelineEdits } from '../../src/pipeline/edit';
import { parseCsv, parsePipeline, unpackPipeline } from '../../src/pipeline/parse';
import { arrowsOf, bubbleOf, holdings } from '../../src/pipeline/picture';
import { play } from '../../src/pipeline/play';
import { parsePipelineTimes } from '../../src/pipeline/recorded';
import { actionsText } from '../../src/pipeline/text';
import type { Pipeline } from '../../src/pipeline/types';
import { verify } from '../../src/pipeline/verify';
import { pipelineSentence } from '../../src/text/pipeline_finding';
import { run } from '../program';

function verdictOf(pipeline: Pipeline) {
  const { findings, leastCapacity, peakActivations, peakBytes } = verify(pipeline);
  return {
    findings: findings.map((each) => ({ kind: each.kind, text: pipelineSentence('en', each) })),
    least_capacity: leastCapacity,
    peak_activations: peakActivations,
    peak_bytes: peakBytes,
  };
}

describe('pipelines are those of the command line', () => {
  it('in time, in transfers and in findings', { timeout: 120_000 }, () => {
    const lines = run(['6'], 'pipeline_cases').trim().split('\n');
    expect(lines.length).toBeGreaterThan(150);
    let wrong = 0;
    for (const line of lines) {
      const expected = JSON.parse(line);
      const pipeline = parsePipeline(expected.pipeline);
      const name = `${pipeline.name} p=${pipeline.ranks} m=${pipeline.microbatches}`;
      for (const of of expected.runs) {
        const played = play(pipeline, { slowStage: of.slow_stage, slowFactor: of.slow_factor });
        expect(played.makespan, name).toBe(of.makespan);
        expect(played.busy, name).toEqual(of.busy);
        const spans = played.spans.map((row) => row.map(({ start, end }) => [start, end]));
        expect(spans, name).toEqual(of.spans);
      }
      expect(verdictOf(pipeline), name).toEqual(expected.verdict);
      // The page carries only computations.
      const carried = unpackPipeline(pipeline.name, {
        ...expected.pipeline,
        actions: expected.computations,
      });
      expect(carried.actions.map(actionsText), name).toEqual(pipeline.actions.map(actionsText));
      for (const { edit, verdict } of expected.mutants) {
        const mutant = editPipeline(pipeline, edit);
        expect(verdictOf(mutant), `${name} ${JSON.stringify(edit)}`).toEqual(verdict);
        wrong += verdict.findings.length > 0 ? 1 : 0;
      }
    }
    expect(wrong).toBeGreaterThan(400);
  });
});

describe('files', () => {
  it('have a rank without stages where a line has no actions', () => {
    expect(parseCsv('0F0,0B0\r\n\r\n', '').ranks).toBe(2);
    expect(parseCsv('0F0,0B0\n', '').ranks).toBe(1);
  });

  // 200000 actions, most of them in one lane, and messages that nobody sends behind as many as that.
  it('of the largest size are read and proved at once', { timeout: 20_000 }, () => {
    const rows = ['', ''];
    for (let i = 0; i < 12_000; i++) {
      for (let stage = 0; stage < 8; stage++) {
        rows[stage % 2] += `${stage}${stage % 2 === 0 ? 'F' : 'I'}${i},`;
      }
    }
    const pipeline = parseCsv(rows.join('\n'), '');
    expect(verify(pipeline).findings).toHaveLength(100);
    expect(() => parseCsv('0F65535,3F0,2F0,1F0', '')).toThrow('4 times 65536 microbatches');
  });

  it('reads the CSV of torch.distributed.pipelining, with what it leaves out', () => {
    const pipeline = parseCsv('0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n', 'mine');
    expect(pipeline.stages).toEqual([0, 1]);
    expect(actionsText(pipeline.actions[0]!)).toBe(
      '0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1',
    );
    expect(verify(pipeline).findings).toEqual([]);
  });

  it.each([
    ['0F0,0X1', "line 1, cell 2: '0X1' is not an action"],
    ['1F0', 'no rank computes stage 0'],
    [',,', 'no rank computes anything'],
  ])('says where %j is wrong', (text, message) => {
    expect(() => parseCsv(text, '')).toThrow(message);
  });

  it.each([
    [{}, '/format'],
    [{ format: 'unisono.pipeline/1' }, '/actions'],
    [{ format: 'unisono.pipeline/1', actions: [['0F0']] }, '/microbatches'],
    [{ format: 'unisono.pipeline/1', actions: [['0F0']], microbatches: 1 }, '/stages'],
    [
      { format: 'unisono.pipeline/1', actions: [['0F0']], microbatches: 1, stages: [1] },
      '/stages/0',
    ],
    [
      { format: 'unisono.pipeline/1', actions: [['1F0']], microbatches: 1, stages: [0] },
      '/actions/0',
    ],
    [
      {
        ...{ format: 'unisono.pipeline/1', actions: [['0F0']], microbatches: 1, stages: [0] },
        chains: [{ stages: [0, 0], first: 0, count: 1 }],
      },
      '/chains/0/stages',
    ],
  ])('says where %j is wrong', (document, message) => {
    expect(() => parsePipeline(document)).toThrow(message);
  });
});

describe('edits', () => {
  it('are read from an address, and leave overlaps whole', () => {
    expect(parsePipelineEdits('2.5x,0.1s,junk')).toEqual([
      { rank: 2, index: 5, drop: true },
      { rank: 0, index: 1, drop: false },
    ]);
    const pipeline = parsePipeline({
      ...{ format: 'unisono.pipeline/1', microbatches: 2, stages: [0] },
      actions: [['0F0', '(0F1;0B0)OVERLAP_F_B', '0B1']],
    });
    expect(editPipeline(pipeline, { rank: 0, index: 2, drop: true })).toBe(pipeline);
    expect(editPipeline(pipeline, { rank: 0, index: 0, drop: false })).toBe(pipeline);
    expect(editPipeline(pipeline, { rank: 0, index: 4, drop: true }).actions[0]).toHaveLength(4);
    expect(editPipeline(pipeline, { rank: 9, index: 0, drop: true }).actions).toEqual(
      pipeline.actions,
    );
  });
});

describe('times of a run', () => {
  const words = ['dualpipev', '-n', '2', '-m', '4'];
  const pipeline = JSON.parse(run(['pipeline', 'show', ...words, '--format', 'pipeline']));
  const { ranks } = JSON.parse(run(['pipeline', 'show', ...words, '--json']));
  const times = { schema: 'unisono.pipeline_times/1', pipeline, ranks, predicted: ranks };

  it('are played as they were', () => {
    const read = parsePipelineTimes(times);
    const played = play(read.pipeline);
    expect(read.measured).toEqual({ ...played, busy: read.measured.busy });
    read.measured.busy.forEach((each, rank) => expect(each).toBeCloseTo(played.busy[rank]!));
  });

  it('have messages that end where either end has noted it', () => {
    const read = parsePipelineTimes(times);
    const late = { ...read.measured, spans: structuredClone(read.measured.spans) };
    read.pipeline.actions.forEach((row, rank) =>
      row.forEach(({ kind }, i) => {
        if (kind.startsWith('SEND')) late.spans[rank]![i]!.end += 100;
      }),
    );
    const ends = arrowsOf(read.pipeline, late).map(({ end }) => end);
    expect(Math.max(...ends)).toBeLessThanOrEqual(read.measured.makespan);
    expect(ends.length).toBeGreaterThan(10);
  });

  const without = ranks.map((row: unknown[]) => row.slice(1));
  it.each([
    [{ ...times, schema: 'unisono.pipeline_times/2' }, '/schema'],
    [{ ...times, pipeline: undefined }, '/pipeline'],
    [{ ...times, ranks: [] }, '/ranks/0'],
    [{ ...times, predicted: without }, '/predicted/0: not a time for each'],
    [{ ...times, ranks: [ranks[1], ranks[0]] }, '/ranks/0'],
    [{ ...times, ranks: [[{ action: '0F0', start: 0 }, ...ranks[0].slice(1)]] }, '/ranks/0/0'],
  ])('say where they are wrong: %#', (document, message) => {
    expect(() => parsePipelineTimes(document)).toThrow(message);
  });
});

describe('the curve of what is held', () => {
  it('has both of an overlap, whichever is spelt first', () => {
    for (const cell of ['(0F1;0B0)', '(0B0;0F1)']) {
      const pipeline = parseCsv(`0F0,${cell}OVERLAP_F_B,0B1`, '');
      expect(holdings(pipeline, play(pipeline))[0]!.peak).toBe(2);
      expect(verify(pipeline).peakBytes).toEqual([2]);
    }
  });
});

describe('the golden data', () => {
  const columns = ['p', 'v', 'm', 'F', 'I', 'W', 'comm', 'makespan', 'busy', 'bubble'] as const;
  // From the papers' formulas and reference programs: schedule, shape, times, and what it takes.
  const GOLDEN = `gpipe 4 1 8 1 1 1 0 33 24 9
1f1b 4 1 8 1 1 1 0 33 24 9
interleaved 4 2 8 .5 .5 .5 0 28.5 24 4.5
zb-h1 4 1 8 1 1 1 0 27 24 3
zbv 4 2 8 .5 .5 .5 0 25.5 24 1.5
dualpipe 4 2 8 1 1 1 0 26 24 2
dualpipev 4 2 8 .5 .5 .5 0 27 24 3`;

  it.each(GOLDEN.split('\n'))('%s', (line) => {
    const [name, ...numbers] = line.split(' ');
    const of = Object.fromEntries(columns.map((key, i) => [key, Number(numbers[i])]));
    const shape = ['-n', `${of.p}`, '-m', `${of.m}`, '--format', 'pipeline'];
    const pipeline = parsePipeline(JSON.parse(run(['pipeline', 'show', name!, ...shape])));
    const played = play(pipeline);
    expect(played.makespan).toBe(of.makespan);
    expect(Math.max(...played.busy)).toBe(of.busy);
    expect(bubbleOf(played) * played.makespan).toBeCloseTo(of.bubble!);
    // The curve under the picture has the peak that is proved.
    expect(holdings(pipeline, played).map((each) => each.peak)).toEqual(verify(pipeline).peakBytes);
    const sent = pipeline.actions.flat().filter(({ kind }) => kind.startsWith('SEND'));
    expect(arrowsOf(pipeline, played)).toHaveLength(sent.length);
  });
});
