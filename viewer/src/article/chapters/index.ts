// The chapters of the article, in their order.
import type { Chapter } from '../types';
import { FIRST } from './first';
import { LAST } from './last';
import { MODELS } from './models';

export const CHAPTERS: Chapter[] = [...FIRST, ...MODELS, ...LAST];
